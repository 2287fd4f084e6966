#include "tests/nccl_trace/compare.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <tuple>

namespace ghostrank::nccl_trace {
namespace {

std::multiset<std::pair<GroupRank, Messages>> as_set(
    const std::multimap<GroupRank, Messages>& sent) {
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

std::string difference(GroupRank rank, const std::multimap<GroupRank, Messages>& theirs,
                       const std::multimap<GroupRank, Messages>& ours) {
  const auto real = as_set(theirs), made = as_set(ours);
  std::vector<std::pair<GroupRank, Messages>> only_real, only_made;
  std::set_difference(real.begin(), real.end(), made.begin(), made.end(),
                      std::back_inserter(only_real));
  std::set_difference(made.begin(), made.end(), real.begin(), real.end(),
                      std::back_inserter(only_made));
  if (only_real.empty() && only_made.empty()) return {};
  const auto target = [](const auto& only) { return std::to_string(only.front().first); };
  const std::string who = "rank " + std::to_string(rank) + " to rank ";
  if (only_made.empty()) return who + target(only_real) + ": NCCL has a connection more";
  if (only_real.empty()) return who + target(only_made) + ": NCCL has a connection less";
  if (target(only_real) != target(only_made))
    return who + target(only_real) + ": ours goes to rank " + target(only_made);
  return who + target(only_real) + ": " +
         parting(only_real.front().second, only_made.front().second);
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
    const auto& calls = traces.front().calls;
    if (!std::equal(calls.begin(), calls.end(), trace.calls.begin(), trace.calls.end(),
                    [](const RankCall& a, const RankCall& b) { return a.call == b.call; }))
      throw std::runtime_error("rank " + std::to_string(trace.rank) +
                               " made other calls than rank " +
                               std::to_string(traces.front().rank));
  }
}

}  // namespace

std::multimap<GroupRank, Messages> scheduled(const Schedule& schedule, GroupRank rank) {
  std::map<std::tuple<int, GroupRank>, Messages> by_connection;  // key: channel and target
  for (int a = 0; a < schedule.actors(rank); ++a) {
    const Actor actor = schedule.actor(rank, a);
    for (int k = 0; k < actor.steps; ++k) {
      const Step step = schedule.step(rank, a, k);
      for (std::uint32_t s = 0; s < step.slices; ++s)
        for (const GroupRank peer : step.send_to)
          by_connection[{actor.channel, peer}].push_back(
              message_bytes(schedule.protocol(), slice_of(step.send, step, s).count,
                            schedule.collective().element_bytes));
    }
  }
  std::multimap<GroupRank, Messages> sent;
  for (auto& [connection, messages] : by_connection)
    sent.emplace(std::get<1>(connection), std::move(messages));
  return sent;
}

std::vector<Verdict> compare(std::span<const RankTrace> traces) {
  if (traces.empty()) throw std::runtime_error("there is no trace");
  check_together(traces);
  std::vector<Verdict> verdicts;
  for (std::size_t i = 0; i < traces.front().calls.size(); ++i) {
    const std::string& mark = traces.front().calls[i].call;
    const Call call = parse_call(mark, static_cast<int>(traces.size()));
    const Algorithm* row = find_algorithm(call.library, call.collective.func, call.algorithm);
    if (!row) throw std::runtime_error("we have no schedule for " + mark);
    const auto schedule = row->make(call.collective, call.communicator);
    Verdict verdict{mark, {}};
    for (const RankTrace& trace : traces)
      if (verdict.difference.empty())
        verdict.difference =
            difference(trace.rank, trace.calls[i].sent, scheduled(*schedule, trace.rank));
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

}  // namespace ghostrank::nccl_trace
