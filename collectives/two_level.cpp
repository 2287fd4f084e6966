// Two-level all-reduce for N nodes of L ranks each: reduce-scatter inside the node, all-reduce of
// each local rank with its fellows on the other nodes, all-gather inside the node; all three rings.
//
//   2 nodes of 2     inside the node   across nodes      inside the node
//   ranks 0 1 | 2 3  0 <> 1   2 <> 3   0 <> 2   1 <> 3   0 <> 1   2 <> 3
//
// The buffer is cut into L chunks, one per local rank, and those into N pieces, one per node. Only
// 2 (N-1)/N of a chunk per rank crosses between nodes, as many bytes as in a ring over all ranks,
// but in 2(N-1) instead of 2(n-1) steps. Where nodes differ in size or are scattered over the
// group, every rank counts as a node: a plain ring.
//
// Steps 2(L-1) + 2(N-1); bytes 2(n-1) S in total.
#include "collectives/generic.h"

namespace ghostrank {
namespace {

struct Place {
  int locals, nodes;  // L, N
  int local, node;
};

Place place(const Shape& s, int p) {
  const int locals = s.ranks_a_node;
  return {locals, s.size / locals, p % locals, p / locals};
}

int around(int i, int n) { return (i % n + n) % n; }

int position(const Place& at, int node, int local) {
  return around(node, at.nodes) * at.locals + around(local, at.locals);
}

Block chunk(const Shape& s, const Place& at, int local) {
  return s.range(around(local, at.locals) * at.nodes, at.nodes, s.size);
}

Block piece(const Shape& s, const Place& at, int node) {
  return s.piece(at.local * at.nodes + around(node, at.nodes));
}

int rounds(const Shape& s, int p) {
  const Place at = place(s, p);
  return 2 * (at.locals - 1) + 2 * (at.nodes - 1);
}

// In round k of a ring the chunk `back` places to the left of the own one leaves; see ring.cpp.
Transfer send(const Shape& s, int p, int k) {
  const Place at = place(s, p);
  const int inside = at.locals - 1, across = 2 * (at.nodes - 1);
  if (k < inside) return {position(at, at.node, at.local + 1), chunk(s, at, at.local - 1 - k)};
  k -= inside;
  if (k < across) return {position(at, at.node + 1, at.local), piece(s, at, at.node - 1 - k)};
  k -= across;
  return {position(at, at.node, at.local + 1), chunk(s, at, at.local - k)};
}

Transfer recv(const Shape& s, int p, int k) {
  const Place at = place(s, p);
  const int inside = at.locals - 1, across = 2 * (at.nodes - 1);
  if (k < inside)
    return {position(at, at.node, at.local - 1), chunk(s, at, at.local - 2 - k), Combine::reduce};
  k -= inside;
  if (k < across)
    return {position(at, at.node - 1, at.local), piece(s, at, at.node - 2 - k),
            k < at.nodes - 1 ? Combine::reduce : Combine::copy};
  k -= across;
  return {position(at, at.node, at.local - 1), chunk(s, at, at.local - 1 - k)};
}

}  // namespace

const Form kTwoLevelAllReduce{
    .pace = Form::Pace::uneven, .rounds = rounds, .send = send, .recv = recv};

}  // namespace ghostrank
