#include "profiles/planners/schedulers/bytescheduler.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <optional>
#include <queue>
#include <string>
#include <utility>

#include "profiles/error.h"
#include "profiles/planners/shared/data_parallel.h"
#include "profiles/workload/program_builder.h"

namespace ghostrank {
namespace {

constexpr std::size_t kCompute = 0, kComm = 1;
constexpr std::uint64_t kMostPartitions = 1'000'000;  // of a step
constexpr double kNever = std::numeric_limits<double>::infinity();

std::vector<Partition> partitions_of(const Module& module, std::size_t number,
                                     const PartitionRule& rule) {
  const std::uint64_t most = std::max<std::uint64_t>(1, rule.partition / rule.element_bytes);
  std::vector<Partition> out;
  for (const std::uint64_t tensor : module.tensors)
    for (std::uint64_t left = tensor; left > 0;) {
      const std::uint64_t numel = std::min(left, most);
      out.push_back({number, numel});
      left -= numel;
    }
  return out;
}

// What the library plays, one partition after the other.
class Link {
 public:
  Link(const PartitionRule& rule, const AllReduceCost& cost) : rule_(rule), cost_(cost) {}

  // True while some credit is left; the last partition may exceed it.
  bool takes() const { return under_way_.empty() || bytes_ < rule_.credit; }
  void hand_over(double now, std::uint64_t bytes) {
    free_at_ = std::max(now, free_at_) + cost_.seconds(static_cast<double>(bytes));
    under_way_.emplace_back(free_at_, bytes);
    bytes_ += bytes;
  }
  void advance(double now) {
    for (; !under_way_.empty() && under_way_.front().first <= now; under_way_.pop_front())
      bytes_ -= under_way_.front().second;
  }
  double next_end() const { return under_way_.empty() ? kNever : under_way_.front().first; }

 private:
  const PartitionRule& rule_;
  const AllReduceCost& cost_;
  std::deque<std::pair<double, std::uint64_t>> under_way_;  // end, bytes
  std::uint64_t bytes_ = 0;
  double free_at_ = 0;
};

struct Plan {
  std::vector<Module> modules;
  std::vector<Partition> order;
  DataType gradients;
};

// By module: whether its first partition to go waits for its backward. It need not where an earlier
// partition has waited for a backward that ends later, that of a module nearer to the input.
std::vector<bool> awaited_backwards(const Plan& plan) {
  std::vector<bool> out(plan.modules.size());
  std::size_t reached = plan.modules.size();
  for (const Partition& one : plan.order) {
    if (one.module >= reached) continue;
    out[one.module] = true;
    reached = one.module;
  }
  return out;
}

Program iteration(const Plan& plan, bool inherits) {
  ProgramBuilder out({"compute", "comm"});
  out.outlives(kComm);
  std::vector<std::size_t> left(plan.modules.size());  // partitions that have not gone yet
  for (const Partition& one : plan.order) ++left[one.module];
  std::vector<std::uint32_t> reduced(plan.modules.size());
  for (std::size_t m = 0; m < plan.modules.size(); ++m) {
    const Module& module = plan.modules[m];
    if (left[m] > 0) reduced[m] = out.carried_event();
    if (left[m] > 0 && inherits) {
      out.wait_previous(kCompute, reduced[m]);
      out.compute(kCompute, "step " + module.name, module.optimizer);
    }
    out.compute(kCompute, "forward " + module.name, module.forward);
  }
  const std::vector<bool> awaited = awaited_backwards(plan);
  std::vector<std::optional<ProgramBuilder::Mark>> ended(plan.modules.size());
  for (std::size_t m = plan.modules.size(); m-- > 0;) {
    out.compute(kCompute, "backward " + plan.modules[m].name, plan.modules[m].backward);
    if (awaited[m]) ended[m] = out.mark(kCompute, kComm);
  }
  std::size_t tensor = 0;
  for (const Partition& one : plan.order) {
    if (ended[one.module]) out.wait(*std::exchange(ended[one.module], std::nullopt));
    out.collective(kComm, "partition of " + plan.modules[one.module].name, Func::all_reduce,
                   kDataParallel, plan.gradients, one.numel, 0, ++tensor);
    if (--left[one.module] == 0) out.record(kComm, reduced[one.module]);
  }
  return out.take();
}

}  // namespace

std::vector<Partition> partition_order(std::span<const Module> modules, const PartitionRule& rule,
                                       const AllReduceCost& cost) {
  const auto later = [](const auto& a, const auto& b) { return a.first > b.first; };
  using Entry = std::pair<std::pair<std::size_t, std::size_t>, Partition>;  // module, place in it
  std::priority_queue<Entry, std::vector<Entry>, decltype(later)> queue(later);
  std::vector<Partition> order;
  Link link(rule, cost);
  std::size_t next = modules.size();  // the module whose backward ended last
  double now = 0, ready = next > 0 ? seconds(modules[next - 1].backward) : kNever;
  while (next > 0 || !queue.empty()) {
    for (; next > 0 && ready <= now; --next) {
      std::size_t place = 0;
      for (const Partition& one : partitions_of(modules[next - 1], next - 1, rule))
        queue.push({{next - 1, place++}, one});
      if (next > 1) ready += seconds(modules[next - 2].backward);
    }
    link.advance(now);
    for (; !queue.empty(); queue.pop()) {
      if (!link.takes()) break;
      link.hand_over(now, queue.top().second.numel * rule.element_bytes);
      order.push_back(queue.top().second);
    }
    now = std::min(next > 0 ? ready : kNever, queue.empty() ? kNever : link.next_end());
  }
  return order;
}

Workload plan_bytescheduler(const JobSpec& spec) {
  check_data_parallel(spec);
  const PartitionRule rule{spec.parallel.partition_bytes, spec.parallel.credit_bytes,
                           bytes_of(spec.precision.gradients)};
  const std::uint64_t partitions =
      spec.model->parameters() * rule.element_bytes / rule.partition + spec.model->tensors();
  if (partitions > kMostPartitions)
    throw Error(spec.source_of("parallel.partition_bytes") + ": a step would have " +
                std::to_string(partitions) + " partitions, at most " +
                std::to_string(kMostPartitions) +
                " are played; use a larger parallel.partition_bytes");
  Plan plan{modules_of(*spec.model, step_times(spec)), {}, spec.precision.gradients};
  plan.order = partition_order(plan.modules, rule, assumed_cost(spec));
  return data_parallel_workload(spec,
                                {"bytescheduler", {iteration(plan, false), iteration(plan, true)}});
}

}  // namespace ghostrank
