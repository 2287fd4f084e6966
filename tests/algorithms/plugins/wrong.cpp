// A plugin whose all-reduce forgets to reduce.
#include <memory>

#include "collectives/plugin.h"

namespace {

using namespace ghostrank;

class Forgetful final : public Schedule {
 public:
  using Schedule::Schedule;
  int actors(GroupRank) const override { return collective().size > 1 ? 1 : 0; }
  Actor actor(GroupRank, int) const override { return {0, 1}; }
  int receiver(GroupRank, int, GroupRank) const override { return 0; }
  Step step(GroupRank r, int, int) const override {
    Step step;
    (r == 0 ? step.send_to : step.recv_from) = r == 0 ? 1 : 0;
    if (r > 1) step.recv_from = {};
    step.recv = step.send = {0, collective().count};
    return step;
  }
};

const Algorithm kRows[]{{.library = "wrong",
                         .func = Func::all_reduce,
                         .name = "forgetful",
                         .make = [](const Collective& c, const Communicator&) {
                           return std::make_unique<Forgetful>(c);
                         }}};

}  // namespace

GHOSTRANK_PLUGIN(kRows)
