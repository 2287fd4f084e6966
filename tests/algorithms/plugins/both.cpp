// A plugin whose row claims to be a schedule and a scheme with agents at once.
#include "collectives/agent.h"
#include "collectives/plugin.h"

namespace {

using namespace ghostrank;

const Algorithm kRows[]{
    {.library = "wrong",
     .func = Func::all_reduce,
     .name = "both",
     .make = [](const Collective&, const Communicator&) { return std::unique_ptr<Schedule>(); },
     .ends = [](int, const Communicator&) { return std::unique_ptr<Ends>(); }}};

}  // namespace

GHOSTRANK_PLUGIN(kRows)
