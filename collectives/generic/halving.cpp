// Recursive halving and doubling: reduce-scatter, all-gather, and Rabenseifner's all-reduce, which
// is the former followed by the latter.
//
// clang-format off
//   size 4, parts    round 0         round 1        round 2        round 3
//   position 0       <-> 2: 23 > 01  <-> 1: 1 > 0   <-> 1: 0 > 1   <-> 2: 01 > 23
//   position 1       <-> 3: 23 > 01  <-> 0: 0 > 1   <-> 0: 1 > 0   <-> 3: 01 > 23
//   position 2       <-> 0: 01 > 23  <-> 3: 3 > 2   <-> 3: 2 > 3   <-> 0: 23 > 01
//   position 3       <-> 1: 01 > 23  <-> 2: 2 > 3   <-> 2: 3 > 2   <-> 1: 23 > 01
// clang-format on
//
// "23 > 01" sends parts 2 and 3 and receives parts 0 and 1. Halving, the first two rounds, reduces
// and leaves position p with part p; doubling, the other two, copies. Sizes other than powers of
// two fold before and unfold after (folding.h). In the all-reduce a part is 1/m of the buffer. In
// the other two a part is the blocks of a survivor and of the position folded into it. These blocks
// follow each other in the buffer, but a channel's shares of them do not, so the messages are
// scattered.
//
// clang-format off
//   all-reduce       2 log2 m steps, 2 more if x > 0; 2(n-1) S in total
//   reduce-scatter   log2 m steps, 2 more if x > 0; (n(n-1) + x) S in total, because folding sends
//                    all blocks and unfolding returns one
//   all-gather       log2 m steps, 2 more if x > 0; n(n-1) S in total, because a folded position
//                    does not get its own block back
// clang-format on
#include "collectives/generic/folding.h"
#include "collectives/generic/generic.h"

namespace ghostrank {
namespace {

// Survivors [first, first + n).
struct Span {
  int first, n;
};

// One exchange of a survivor: its partner, and the survivors whose parts it sends and receives.
struct Exchange {
  int partner;  // survivor
  Span sent, received;
};

Exchange halve(const Folding& f, int level) {
  const int distance = f.survivors() >> (level + 1), partner = f.number ^ distance;
  return {partner, {partner & -distance, distance}, {f.number & -distance, distance}};
}

Exchange redouble(const Folding& f, int level) {
  const int distance = 1 << level, partner = f.number ^ distance;
  return {partner, {f.number & -distance, distance}, {partner & -distance, distance}};
}

// ---- All-reduce

int all_reduce_rounds(const ChannelView& s, int p) {
  const Folding f(s, p);
  return f.rounds(2 * f.levels);
}

Transfer all_reduce_send(const ChannelView& s, int p, int k) {
  const Folding f(s, p);
  if (f.folded) return k == 0 ? Transfer{p + 1, s.share} : Transfer{};
  const int own = f.own_round(k);
  if (own < 0) return {};
  if (own == 2 * f.levels) return {p - 1, s.share};
  const Exchange e = own < f.levels ? halve(f, own) : redouble(f, own - f.levels);
  return {f.position(e.partner), s.range(e.sent.first, e.sent.n, f.survivors())};
}

Transfer all_reduce_recv(const ChannelView& s, int p, int k) {
  const Folding f(s, p);
  if (f.folded) return k == 1 ? Transfer{p + 1, s.share} : Transfer{};
  const int own = f.own_round(k);
  if (own < 0) return {p - 1, s.share, Combine::reduce};
  if (own == 2 * f.levels) return {};
  const Exchange e = own < f.levels ? halve(f, own) : redouble(f, own - f.levels);
  return {f.position(e.partner), s.range(e.received.first, e.received.n, f.survivors()),
          own < f.levels ? Combine::reduce : Combine::copy};
}

// ---- Reduce-scatter and all-gather

int one_way_rounds(const ChannelView& s, int p) {
  const Folding f(s, p);
  return f.rounds(f.levels);
}

// The blocks of positions first .. first + n - 1, wrapping around the group.
struct Blocks {
  int first = 0, n = 0;
};

Blocks of_survivors(const Folding& f, Span span) {
  const int first = f.span(span.first);
  return {first, f.span(span.first + span.n) - first};
}

// A message of one round: its peer and its blocks.
struct Message {
  int peer = kNoRank;
  Blocks blocks;
  Combine combine = Combine::copy;
};

template <Exchange (*kExchange)(const Folding&, int)>
Message survivors_message(const Folding& f, int level, Way way, Combine combine) {
  const Exchange e = kExchange(f, level);
  return {f.position(e.partner), of_survivors(f, way == Way::send ? e.sent : e.received), combine};
}

Message reduce_scatter_message(const ChannelView& s, int p, int k, Way way) {
  const Folding f(s, p);
  const bool sends = way == Way::send;
  if (f.folded) {
    if (sends != (k == 0)) return {};
    return sends ? Message{p + 1, {0, s.size}} : Message{p + 1, {p, 1}};
  }
  const int own = f.own_round(k);
  if (own < 0) return sends ? Message{} : Message{p - 1, {0, s.size}, Combine::reduce};
  if (own == f.levels) return sends ? Message{p - 1, {p - 1, 1}} : Message{};
  return survivors_message<halve>(f, own, way, Combine::reduce);
}

Message all_gather_message(const ChannelView& s, int p, int k, Way way) {
  const Folding f(s, p);
  const bool sends = way == Way::send;
  if (f.folded) {
    if (sends != (k == 0)) return {};
    return sends ? Message{p + 1, {p, 1}} : Message{p + 1, {p + 1, s.size - 1}};
  }
  const int own = f.own_round(k);
  if (own < 0) return sends ? Message{} : Message{p - 1, {p - 1, 1}};
  if (own == f.levels) return sends ? Message{p - 1, {p, s.size - 1}} : Message{};
  return survivors_message<redouble>(f, own, way, Combine::copy);
}

template <Message (*kMessage)(const ChannelView&, int, int, Way)>
Transfer send(const ChannelView& s, int p, int k) {
  const Message message = kMessage(s, p, k, Way::send);
  return {message.peer, s.blocks(message.blocks.n)};
}

template <Message (*kMessage)(const ChannelView&, int, int, Way)>
Transfer recv(const ChannelView& s, int p, int k) {
  const Message message = kMessage(s, p, k, Way::recv);
  return {message.peer, s.blocks(message.blocks.n), message.combine};
}

template <Message (*kMessage)(const ChannelView&, int, int, Way)>
void pieces(const ChannelView& s, int p, int k, Way way, std::vector<Block>& out) {
  const Message message = kMessage(s, p, k, way);
  for (int i = 0; i < message.blocks.n; ++i)
    out.push_back(s.block(s.wrap(message.blocks.first + i)));
}

}  // namespace

const Form kRabenseifnerAllReduce{.pace = Form::Pace::uneven,
                                  .rounds = all_reduce_rounds,
                                  .send = all_reduce_send,
                                  .recv = all_reduce_recv};
const Form kRecursiveHalvingReduceScatter{.rounds = one_way_rounds,
                                          .send = send<reduce_scatter_message>,
                                          .recv = recv<reduce_scatter_message>,
                                          .pieces = pieces<reduce_scatter_message>};
const Form kRecursiveDoublingAllGather{.rounds = one_way_rounds,
                                       .send = send<all_gather_message>,
                                       .recv = recv<all_gather_message>,
                                       .pieces = pieces<all_gather_message>};

}  // namespace ghostrank
