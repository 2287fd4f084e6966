// A plug-in that works until it is played: a broadcast along a chain in 600 pieces, more than are
// computed in advance. If the count is one of Throws, the last rank throws in the engine thread
// that plays it, not in the thread that makes, proves and plans the schedule.
#include <algorithm>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>

#include "collectives/plugin.h"

namespace {

using namespace ghostrank;

constexpr std::uint64_t kPieces = 600;

enum Throws : std::uint64_t { at_once = 1200, halfway, of_memory, something };

class Chain final : public Schedule {
 public:
  using Schedule::Schedule;
  int actors(GroupRank) const override { return collective().size > 1 ? 1 : 0; }
  Actor actor(GroupRank, int) const override { return {0, static_cast<int>(all_pieces())}; }
  int receiver(GroupRank, int, GroupRank) const override { return 0; }

  Step step(GroupRank r, int, int k) const override {
    const int n = collective().size, root = collective().root;
    const int position = (r + n - root) % n;
    if (position == n - 1 && std::this_thread::get_id() != maker_) throw_at(k);
    Step step;
    if (position > 0) step.recv_from = (r + n - 1) % n;
    if (position < n - 1) step.send_to = (r + 1) % n;
    const std::uint64_t begin = piece(static_cast<std::uint64_t>(k));
    step.recv = step.send = {begin, piece(static_cast<std::uint64_t>(k) + 1) - begin};
    return step;
  }

 private:
  std::uint64_t all_pieces() const {
    return std::clamp<std::uint64_t>(collective().count, 1, kPieces);
  }
  std::uint64_t piece(std::uint64_t i) const { return collective().count * i / all_pieces(); }

  void throw_at(int k) const {
    const auto count = collective().count;
    if (k == 0 && count == at_once) throw std::runtime_error("no first step");
    if (k != kPieces / 2) return;
    if (count == halfway) throw std::runtime_error("no step 300");
    if (count == of_memory) throw std::bad_alloc();
    if (count == something) throw 42;
  }

  const std::thread::id maker_ = std::this_thread::get_id();
};

const Algorithm kRows[]{
    {.library = "throws",
     .func = Func::broadcast,
     .name = "chain",
     .make = [](const Collective& c, const Communicator&) { return std::make_unique<Chain>(c); }}};

}  // namespace

GHOSTRANK_PLUGIN(kRows)
