// How long a step takes where calls do not disturb each other: an answer in milliseconds, for
// searches that compare hundreds of plans. Tests compare it with the plan's run in virtual time
// (tests/emulator/step_estimate_test.cpp).
//
// It follows one rank of every role through its program, stream by stream and event by event.
// Computation takes its time, and workers of a stream call at the same time. A call begins when all
// followed members have come, and takes as long as it does alone (shard/idle_call.h) or, with too
// many members on several nodes, as long as its bytes need at least. Where GPUs share NICs, groups
// of one kind whose members have the same roles call at the same time, so "alone" means: with those
// that share its nodes. Where links are modelled, a call lasts at least as long as the busiest link
// needs for all such groups of the cluster. The sender of a transfer does not wait for its
// receiver. The hops of a ring all take as long as the slowest of them. So the ranks of a role are
// taken as equal, other calls do not share NICs or links, and nothing jitters.
//
// Errors: Error(usage) for programs that it cannot follow, and as play_alone() throws them.
// Threading: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "profiles/job/job.h"
#include "profiles/workload/program.h"

namespace ghostrank {

struct StepEstimate {
  Picoseconds step = 0;
  Picoseconds compute = 0;  // of the role that computes longest; it waits for the rest of the step
};

class StepEstimator {
 public:
  static constexpr int kMostPlayed = 32;    // members of a group
  static constexpr int kMostSharing = 128;  // with those of the groups beside it

  // The steady state of the job. `spec` may differ from call to call in what is trained and how,
  // not in its cluster, library or fabric: the times of calls are remembered.
  StepEstimate estimate(const JobSpec& spec, const Workload& workload);

 private:
  struct Followed;
  // How long a call takes alone: until its last member is done, until a transfer's sender is done.
  struct Time {
    Picoseconds whole = 0, sender = 0;
  };
  struct CallKey {
    std::string group;  // its kind's name, which may choose the algorithm
    std::size_t members = 0;
    std::vector<int> locations;  // of the members, then of groups beside: node, from 0, and GPU
    std::vector<std::uint64_t> counts;  // of a v-variant: plans number them differently
    Op op;                              // compared by the fields that its time depends on
    GroupRank source = kNoRank, target = kNoRank;
    auto tied() const;
    bool operator<(const CallKey& other) const;
  };
  Time alone(const JobSpec& spec, const Workload& workload, std::uint32_t group,
             const std::vector<std::uint32_t>& beside, const Op& op, GroupRank source,
             GroupRank target);

  std::map<CallKey, Time> known_;
};

// Returns the job with its last step in every iteration. An estimate is of that step, because DDP's
// first two reduce their gradients differently.
Workload in_steady_state(Workload workload);

}  // namespace ghostrank
