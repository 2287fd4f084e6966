// Send/receive: rank 0 of the group sends its buffer to rank 1; all other ranks do nothing.
//
//   rank 0 ------> rank 1      1 step, S bytes
#include "collectives/generic/generic.h"

namespace ghostrank {
namespace {

int rounds(const ChannelView& s, int position) { return s.size > 1 && position < 2 ? 1 : 0; }

Transfer send(const ChannelView& s, int position, int) {
  return position == 0 ? Transfer{1, s.share} : Transfer{};
}

Transfer recv(const ChannelView& s, int position, int) {
  return position == 1 ? Transfer{0, s.share} : Transfer{};
}

}  // namespace

const Form kSendRecv{.ranks = Form::Ranks::in_order, .rounds = rounds, .send = send, .recv = recv};

}  // namespace ghostrank
