// Send/receive: the root sends its buffer to the target; all other ranks do nothing.
//
//   root ------> target      1 step, S bytes
#include "collectives/generic/generic.h"

namespace ghostrank {
namespace {

int rounds(const ChannelView& s, int position) {
  return s.size > 1 && (position == s.root || position == s.target) ? 1 : 0;
}

Transfer send(const ChannelView& s, int position, int) {
  return position == s.root ? Transfer{s.target, s.share} : Transfer{};
}

Transfer recv(const ChannelView& s, int position, int) {
  return position == s.target ? Transfer{s.root, s.share} : Transfer{};
}

}  // namespace

const Form kSendRecv{.ranks = Form::Ranks::in_order, .rounds = rounds, .send = send, .recv = recv};

}  // namespace ghostrank
