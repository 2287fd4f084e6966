// How long a call takes alone, or with groups beside it that make the same call over the same NICs:
// as long as the engine plays it on an idle network (shard/idle_call.h) or, with too many members
// on several nodes, as long as its bytes need at least. Times are remembered.
//
// Errors: as play_alone() throws them. Threading: one owner.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "profiles/job/job.h"
#include "profiles/workload/program.h"

namespace ghostrank {

class CallTimes {
 public:
  static constexpr int kMostPlayed = 32;    // members of a group
  static constexpr int kMostSharing = 128;  // with those of the groups beside it

  // Until its last member is done, until a transfer's sender is done.
  struct Time {
    Picoseconds whole = 0, sender = 0;
  };
  // `source`, `target`: of a transfer, group ranks; else kNoRank. `spec` may differ from call to
  // call in what is trained and how, not in its cluster, library or fabric.
  Time alone(const JobSpec& spec, const Workload& workload, std::uint32_t group,
             const std::vector<std::uint32_t>& beside, const Op& op, GroupRank source,
             GroupRank target);

 private:
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

  std::map<CallKey, Time> known_;
};

}  // namespace ghostrank
