#include "emulator/traffic/traffic.h"

#include <algorithm>
#include <utility>

#include "emulator/traffic/traffic_planner.h"

namespace ghostrank {

SteadyProgram steady_program(const Workload& workload) {
  const int programs = distinct_iterations(workload);
  if (workload.order.empty()) return {programs - 1, 1};
  std::vector<std::uint32_t> often(static_cast<std::size_t>(programs));
  for (auto at = workload.order.end() - workload.cycle; at != workload.order.end(); ++at)
    ++often[std::min<std::size_t>(*at, often.size() - 1)];
  const auto most = std::max_element(often.rbegin(), often.rend());
  return {static_cast<int>(often.rend() - most) - 1, *most};
}

TrafficPlan plan_traffic(const JobSpec& spec, const Workload& workload, std::optional<int> number) {
  const int program = number.value_or(steady_program(workload).number);
  return TrafficPlanner(spec, workload).plan({{program, 1}});
}

TrafficPlan mean_traffic(const JobSpec& spec, const Workload& workload) {
  const int last = distinct_iterations(workload) - 1;
  std::map<int, std::uint64_t> measured;
  for (int i = spec.run.warmup; i < spec.run.warmup + spec.run.iterations; ++i)
    ++measured[std::min(static_cast<int>(program_number(workload, i)), last)];
  return TrafficPlanner(spec, workload).plan(measured);
}

struct CallsOnNetwork::State {
  TrafficPlanner planner;
};

CallsOnNetwork::CallsOnNetwork(const JobSpec& spec, const Workload& workload)
    : state_(new State{TrafficPlanner(spec, workload)}) {}
CallsOnNetwork::~CallsOnNetwork() = default;

const std::vector<CallsOnNetwork::Busy>& CallsOnNetwork::busy(
    const std::vector<std::uint32_t>& groups, const std::vector<Op>& calls,
    const std::vector<GroupRank>& receivers) {
  return state_->planner.busy(groups, calls, receivers);
}

double CallsOnNetwork::ahead(std::uint32_t group, const Op& receive, GroupRank receiver) {
  return state_->planner.ahead(group, receive, receiver);
}

std::vector<Connection> plan_connections(const JobSpec& spec, const Workload& workload) {
  std::set<Connection> all;
  for (int i = 0; i < distinct_iterations(workload); ++i)
    TrafficPlanner(spec, workload, &all).plan({{i, 1}});
  return {all.begin(), all.end()};
}

bool sends_packets(const JobSpec& spec, const Workload& workload) {
  for (int i = 0; i < distinct_iterations(workload); ++i)
    if (plan_traffic(spec, workload, i).sends_packets) return true;
  return false;
}

int distinct_iterations(const Workload& workload) {
  std::size_t count = 1;
  for (const Role& role : workload.roles) count = std::max(count, role.iterations.size());
  return static_cast<int>(count);
}

}  // namespace ghostrank
