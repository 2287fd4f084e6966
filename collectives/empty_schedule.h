// A schedule without steps: of a call that agents play, or of one without elements.
//
// Threading: immutable.
#pragma once

#include "collectives/schedule.h"

namespace ghostrank {

class EmptySchedule final : public Schedule {
 public:
  using Schedule::Schedule;
  int actors(GroupRank) const override { return 0; }
  Actor actor(GroupRank, int) const override { return {}; }
  Step step(GroupRank, int, int) const override { return {}; }
  int receiver(GroupRank, int, GroupRank) const override { return 0; }
};

}  // namespace ghostrank
