// How long a step takes: an answer in milliseconds, for searches that compare hundreds of plans.
// Tests compare it with the plan's run in virtual time (tests/emulator/step_estimate_test.cpp).
//
// It follows one rank of every role through its program, stream by stream and event by event.
// Computation takes its time, and workers of a stream call at the same time. A call begins when all
// followed members have come, and takes as long as it does alone (call_times.h). Groups of one kind
// whose members have the same roles make it at the same time (groups_alike.h), and as slowly as the
// slowest placed of them. Collectives under way together have fair rates of the NICs and links that
// they all need; transfers take turns there (calls_under_way.h). The sender of a transfer waits for
// its receiver when it has no credits left. The hops of a ring all take as long as the slowest of
// them. So the ranks of a role are taken as equal, messages are not played one by one, and nothing
// jitters.
//
// Errors: Error(usage) for programs that it cannot follow, and as play_alone() throws them.
// Threading: one thread.
#pragma once

#include <limits>

#include "emulator/estimate/call_times.h"
#include "profiles/job/job.h"
#include "profiles/workload/program.h"

namespace ghostrank {

struct StepEstimate {
  Picoseconds step = 0;
  Picoseconds compute = 0;  // of the role that computes longest; it waits for the rest of the step
};

class StepEstimator {
 public:
  // The steady state of the job. `spec` may differ from call to call in what is trained and how,
  // not in its cluster, library or fabric: the times of calls are remembered. Of a step that takes
  // `enough` even if calls share nothing, that time is returned.
  StepEstimate estimate(const JobSpec& spec, const Workload& workload,
                        Picoseconds enough = std::numeric_limits<Picoseconds>::max());

 private:
  struct Followed;

  CallTimes times_;
};

// Returns the job with its last step in every iteration. An estimate is of that step, because DDP's
// first two reduce their gradients differently.
Workload in_steady_state(Workload workload);

}  // namespace ghostrank
