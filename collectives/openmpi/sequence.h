// Plays one schedule after the other, for a collective that a library composes of two, such as a
// gather and a broadcast. A rank starts the second part when it has ended its own first part.
//
// Threading: immutable.
#pragma once

#include <memory>
#include <utility>

#include "collectives/schedule.h"

namespace ghostrank {

// Both parts have one actor per rank, on channel 0, and no credits. `c` is the composed collective;
// it uses the same buffers.
class Sequence final : public Schedule {
 public:
  Sequence(const Collective& c, std::unique_ptr<Schedule> first, std::unique_ptr<Schedule> second)
      : Schedule(c), first_(std::move(first)), second_(std::move(second)) {}

  int actors(GroupRank) const override { return 1; }
  Actor actor(GroupRank r, int) const override {
    return {0, steps_of(*first_, r) + steps_of(*second_, r)};
  }
  Step step(GroupRank r, int, int k) const override {
    const int before = steps_of(*first_, r);
    return k < before ? first_->step(r, 0, k) : second_->step(r, 0, k - before);
  }
  int receiver(GroupRank, int, GroupRank) const override { return 0; }
  void pieces(GroupRank r, int, int k, Way way, std::vector<Block>& out) const override {
    const int before = steps_of(*first_, r);
    k < before ? first_->pieces(r, 0, k, way, out) : second_->pieces(r, 0, k - before, way, out);
  }

 private:
  static int steps_of(const Schedule& part, GroupRank r) { return part.actor(r, 0).steps; }

  std::unique_ptr<Schedule> first_, second_;
};

}  // namespace ghostrank
