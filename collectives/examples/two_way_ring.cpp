// An algorithm of your own as a plug-in: an all-reduce along two rings at once. One half of the
// data goes around to the right, the other half to the left, so both directions of every link are
// in use.
//
//   size 3, half 0     step 0   1   2   3   4      the number is the piece; "<" is received,
//   rank 0                 0>  <2> <1> <0> <2      ">" is sent. Up to step 2 the receiver reduces,
//   rank 1                 1>  <0> <2> <1> <0      then it copies; half 1 is the mirror image
//   rank 2                 2>  <1> <0> <2> <1
//
//   2(n-1) steps, every rank sends 2(n-1)/n of the buffer
//
// Build it with the CMakeLists.txt beside it, then
//   ghostrank schedule allreduce --plugin two_way_ring.so --library mine --ranks 6 --check
// or, in a job,  collectives: {plugins: [two_way_ring.so], library: mine}
#include <algorithm>
#include <memory>
#include <stdexcept>

#include "collectives/plugin.h"

namespace {

using namespace ghostrank;

class TwoWayRing final : public Schedule {
 public:
  explicit TwoWayRing(const Collective& c, FlowControl flow) : Schedule(c, flow) {}

  // One actor per direction, each on a channel of its own.
  int actors(GroupRank) const override { return collective().size > 1 ? 2 : 0; }
  Actor actor(GroupRank, int a) const override { return {a, 2 * collective().size - 1}; }
  int receiver(GroupRank, int channel, GroupRank) const override { return channel; }

  Step step(GroupRank r, int a, int k) const override {
    const int n = collective().size, last = 2 * (n - 1);
    const int right = (r + 1) % n, left = (r + n - 1) % n;
    const int position = a == 0 ? r : n - 1 - r;  // position along the ring's direction
    // A step sends on the piece that it receives.
    const Block block = piece(a, (position - k % n + n) % n);
    Step step;
    if (k > 0) step.recv_from = a == 0 ? left : right;
    if (k < last) step.send_to = a == 0 ? right : left;
    step.recv = step.send = block;
    step.on_recv = k < n ? Combine::reduce : Combine::copy;
    return step;
  }

 private:
  // Piece `j` of a half that is cut into n near-equal pieces.
  Block piece(int half, int j) const {
    const std::uint64_t n = collective().size;
    const std::uint64_t middle = collective().count / 2;
    const std::uint64_t begin = half == 0 ? 0 : middle;
    const std::uint64_t count = half == 0 ? middle : collective().count - middle;
    const auto edge = [&](std::uint64_t i) {
      return begin + count / n * i + std::min(i, count % n);
    };
    const std::uint64_t i = j;
    return {edge(i), edge(i + 1) - edge(i)};
  }
};

std::unique_ptr<Schedule> make(const Collective& c, const Communicator& comm) {
  if (comm.slice_bytes > 0) throw std::invalid_argument("two-way-ring knows no slices");
  return std::make_unique<TwoWayRing>(c, comm.flow_control);
}

// Optional; the command prints it with the schedule.
Cost cost(const Collective& c) {
  const std::uint64_t n = c.size;
  return {2 * (c.size - 1), 2 * (n - 1) * c.count * c.element_bytes, 4 * n * (n - 1)};
}

const Algorithm kRows[]{{.library = "mine",
                         .func = Func::all_reduce,
                         .name = "two-way-ring",
                         .steps_formula = "2(n-1)",
                         .bytes_formula = "2(n-1) S",
                         .make = make,
                         .cost = cost}};

}  // namespace

GHOSTRANK_PLUGIN(kRows)
