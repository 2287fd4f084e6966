#include "tests/nccl_trace/compare.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "collectives/nccl/group.h"

namespace ghostrank::nccl_trace {
namespace {

std::multiset<std::pair<Peer, Messages>> as_set(const std::multimap<Peer, Messages>& sent) {
  return {sent.begin(), sent.end()};
}

// "message 3 of 12 has 7 bytes"; past the end: "ends after 12 messages".
std::string message(const Messages& messages, std::size_t i) {
  const std::string all = std::to_string(messages.size());
  if (i >= messages.size()) return "ends after " + all + " messages";
  return "message " + std::to_string(i + 1) + " of " + all + " has " + std::to_string(messages[i]) +
         " bytes";
}

// The first difference between a connection of NCCL's and the one of ours that should equal it.
std::string parting(const Messages& theirs, const Messages& ours) {
  const auto at = std::mismatch(theirs.begin(), theirs.end(), ours.begin(), ours.end()).first;
  const auto i = static_cast<std::size_t>(at - theirs.begin());
  return "NCCL's " + message(theirs, i) + ", ours " + message(ours, i);
}

std::string difference(GroupRank rank, const std::multimap<Peer, Messages>& theirs,
                       const std::multimap<Peer, Messages>& ours) {
  const auto real = as_set(theirs), made = as_set(ours);
  std::vector<std::pair<Peer, Messages>> only_real, only_made;
  std::set_difference(real.begin(), real.end(), made.begin(), made.end(),
                      std::back_inserter(only_real));
  std::set_difference(made.begin(), made.end(), real.begin(), real.end(),
                      std::back_inserter(only_made));
  if (only_real.empty() && only_made.empty()) return {};
  const auto target = [](const auto& only) {
    const Peer peer = only.front().first;
    return std::to_string(peer.target) + " by NIC " + std::to_string(peer.nic);
  };
  const std::string who = "rank " + std::to_string(rank) + " to rank ";
  if (only_made.empty()) return who + target(only_real) + ": NCCL has a connection more";
  if (only_real.empty()) return who + target(only_made) + ": NCCL has a connection less";
  if (target(only_real) != target(only_made))
    return who + target(only_real) + ": ours goes to rank " + target(only_made);
  return who + target(only_real) + ": " +
         parting(only_real.front().second, only_made.front().second);
}

// How many launches every rank has finished.
std::size_t finished(std::span<const RankTrace> traces) {
  std::size_t least = traces.front().launches.size();
  for (const RankTrace& trace : traces) least = std::min(least, trace.launches.size());
  return least;
}

// The first launch that some rank began and not every rank finished; empty: there is none.
std::string broken_off(std::span<const RankTrace> traces) {
  const std::size_t all = finished(traces);
  for (const RankTrace& trace : traces) {
    if (trace.launches.size() > all) return trace.launches[all].mark;
    if (!trace.broken_off.empty()) return trace.broken_off;
  }
  return {};
}

// The first difference in launch i of the traces, or why we cannot play it; empty: all are equal.
std::string difference(std::span<const RankTrace> traces, std::size_t i, const Launch& launch) try {
  std::string first;
  for (const RankTrace& trace : traces)
    if (first.empty())
      first = difference(trace.rank, trace.launches[i].sent, scheduled(launch, trace.rank));
  return first;
} catch (const std::invalid_argument& refusal) {
  return std::string("we refuse it: ") + refusal.what();
}

void check_together(std::span<const RankTrace> traces) {
  std::set<int> ranks;
  for (const RankTrace& trace : traces) {
    if (trace.size != std::ssize(traces))
      throw std::runtime_error("a trace is of a job of " + std::to_string(trace.size) +
                               " ranks, but there are " + std::to_string(traces.size()) +
                               " traces");
    if (!ranks.insert(trace.rank).second)
      throw std::runtime_error("two traces are of rank " + std::to_string(trace.rank));
    for (std::size_t i = 0; i < finished(traces); ++i)
      if (trace.launches[i].mark != traces.front().launches[i].mark)
        throw std::runtime_error("rank " + std::to_string(trace.rank) +
                                 " made other calls than rank " +
                                 std::to_string(traces.front().rank));
  }
}

// The schedules of a launch's calls, in the order in which a channel serves them.
std::vector<std::unique_ptr<Schedule>> schedules_of(const Launch& launch) {
  Communicator communicator = launch.communicator;
  if (launch.calls.size() > 1 && nccl_plans_together(launch.calls.front().func))
    communicator.together = std::make_shared<const std::vector<Collective>>(launch.calls);
  std::vector<std::unique_ptr<Schedule>> schedules;
  for (const Collective& call : launch.calls) {
    const Algorithm* row = find_algorithm(launch.library, call.func, launch.algorithm);
    if (!row)
      throw std::invalid_argument("there is no " + launch.algorithm + " for " +
                                  std::string(name_of(call.func)) + " in " + launch.library);
    schedules.push_back(row->make(call, communicator));
    ++communicator.launch_index;
  }
  std::ranges::sort(schedules, {}, [](const auto& schedule) { return schedule->turn(); });
  return schedules;
}

// Messages of a rank by channel and peer.
using ByConnection = std::map<std::pair<int, Peer>, Messages>;

void add(const Schedule& schedule, GroupRank rank, ByConnection& sent) {
  // A rank is alone on its node; for its own NIC a schedule says kOwnNic (-1), the trace 0.
  const auto nic = [&](GroupRank peer, int channel) {
    return std::max(0, schedule.nic(rank, peer, channel, Way::send));
  };
  for (int a = 0; a < schedule.actors(rank); ++a) {
    const Actor actor = schedule.actor(rank, a);
    for (int k = 0; k < actor.steps; ++k) {
      const Step step = schedule.step(rank, a, k);
      for (std::uint32_t s = 0; s < step.slices; ++s)
        for (const GroupRank peer : step.send_to)
          sent[{actor.channel, {peer, nic(peer, actor.channel)}}].push_back(
              message_bytes(schedule.protocol(), slice_of(step.send, step, s).count,
                            schedule.collective().element_bytes));
    }
  }
}

}  // namespace

std::multimap<Peer, Messages> scheduled(const Launch& launch, GroupRank rank) {
  ByConnection by_connection;
  for (const auto& schedule : schedules_of(launch)) add(*schedule, rank, by_connection);
  std::multimap<Peer, Messages> sent;
  for (auto& [connection, messages] : by_connection)
    sent.emplace(connection.second, std::move(messages));
  return sent;
}

std::vector<Verdict> compare(std::span<const RankTrace> traces,
                             std::shared_ptr<const NcclMachine> machine) {
  if (traces.empty()) throw std::runtime_error("there is no trace");
  check_together(traces);
  std::vector<Verdict> verdicts;
  for (std::size_t i = 0; i < finished(traces); ++i) {
    const std::string& mark = traces.front().launches[i].mark;
    Launch launch = parse_launch(mark, static_cast<int>(traces.size()));
    launch.communicator.machine = machine;
    verdicts.push_back({mark, difference(traces, i, launch)});
  }
  if (const std::string mark = broken_off(traces); !mark.empty())
    verdicts.push_back({mark, "it did not end"});
  return verdicts;
}

}  // namespace ghostrank::nccl_trace
