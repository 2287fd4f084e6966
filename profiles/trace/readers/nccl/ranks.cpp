#include "profiles/trace/readers/nccl/ranks.h"

#include <map>
#include <set>

#include "profiles/error.h"

namespace ghostrank {
namespace {

constexpr WorldRank kUnknown{-1};
constexpr std::uint64_t kMostMembers = 1 << 26;  // of all communicators together

// Members without a file continue the stride of those with one.
void complete(TraceGroup& group, const NcclComm& comm, const std::string& path, Trace& trace) {
  auto& members = group.members;
  std::vector<std::size_t> known;
  for (std::size_t i = 0; i < members.size(); ++i)
    if (members[i] != kUnknown) known.push_back(i);
  if (known.size() == members.size()) return;
  const auto refuse = [&] {
    throw Error(path + ": the members of communicator " + comm.id +
                " cannot be found: " + std::to_string(known.size()) + " of " +
                std::to_string(comm.ranks) + " have a file; give the files of all ranks");
  };
  if (known.size() < 2) refuse();
  const auto span = static_cast<int>(known[1] - known[0]);
  const int stride = (members[known[1]] - members[known[0]]) / span;
  const WorldRank first = members[known[0]] - static_cast<int>(known[0]) * stride;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const WorldRank rank = first + static_cast<int>(i) * stride;
    if (rank < WorldRank(0) || rank.value() >= trace.ranks || stride == 0 ||
        (members[i] != kUnknown && members[i] != rank))
      refuse();
    members[i] = rank;
  }
  trace.notes.push_back("communicator " + comm.id + ": " +
                        std::to_string(members.size() - known.size()) +
                        " members without a file follow the stride of the others");
}

}  // namespace

std::vector<WorldRank> name_ranks(const std::vector<NcclComm>& comms,
                                  const std::vector<NcclMembership>& memberships,
                                  const std::string& path, Trace& trace) {
  std::size_t world = 0;  // the largest, the first of equal ones
  for (std::size_t c = 1; c < comms.size(); ++c)
    if (comms[c].ranks > comms[world].ranks) world = c;
  trace.ranks = comms[world].ranks;
  std::map<std::uint32_t, std::set<WorldRank>> ranks_of;  // by process: its ranks in the job
  for (const NcclMembership& membership : memberships)
    if (membership.comm == world) ranks_of[membership.process].emplace(membership.rank);
  // Communicators of other members than the job's, or of all in another order.
  std::vector<bool> apart(comms.size());
  for (std::size_t c = 0; c < comms.size(); ++c) apart[c] = comms[c].ranks < trace.ranks;
  for (const NcclMembership& membership : memberships) {
    const auto& own = ranks_of[membership.process];
    if (!own.empty() && !own.contains(WorldRank(membership.rank))) apart[membership.comm] = true;
  }
  std::uint64_t all = 0;
  for (std::size_t c = 0; c < comms.size(); ++c) {
    const NcclComm& comm = comms[c];
    if (apart[c] && (all += comm.ranks) > kMostMembers)
      throw Error(path + ": communicators of more than " + std::to_string(kMostMembers) +
                  " members together; the file is damaged");
    TraceGroup group{comm.name.empty() ? comm.id : comm.name, {}};
    if (apart[c]) group.members.assign(comm.ranks, kUnknown);
    trace.groups.push_back(std::move(group));
  }
  std::vector<WorldRank> out;
  for (const NcclMembership& membership : memberships) {
    auto& members = trace.groups[membership.comm].members;
    WorldRank rank(membership.rank);
    if (!members.empty()) {
      const auto& own = ranks_of[membership.process];
      if (own.size() != 1)
        throw Error(path + ": a process with " + std::to_string(own.size()) +
                    " ranks of the job in communicator " + comms[membership.comm].id +
                    ": which of them? record one process a GPU");
      rank = *own.begin();
      members[membership.rank] = rank;
    }
    out.push_back(rank);
  }
  for (std::size_t c = 0; c < comms.size(); ++c) complete(trace.groups[c], comms[c], path, trace);
  return out;
}

}  // namespace ghostrank
