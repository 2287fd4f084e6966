#include "profiles/planners/schedulers/bytescheduler.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>
#include <queue>
#include <string>
#include <utility>

#include "profiles/error.h"
#include "profiles/planners/shared/data_parallel.h"
#include "profiles/planners/shared/two_streams.h"
#include "profiles/workload/program_builder.h"

namespace ghostrank {
namespace {

constexpr std::size_t kHost = 2;
// To finish a tensor, and for each tensor among which it is looked up by name: the authors' code
// for SGD, run by CPython 3.11 on a Xeon with a Horovod that answers at once.
constexpr Picoseconds kFinish = 13 * kPicosPerMicro, kLookup = kPicosPerMicro * 2 / 5;
constexpr std::uint64_t kMostPartitions = 1'000'000;  // of a step
constexpr double kNever = std::numeric_limits<double>::infinity();

std::vector<Partition> partitions_of(const Module& module, std::size_t number,
                                     const PartitionRule& rule) {
  const std::uint64_t most = std::max<std::uint64_t>(1, rule.partition / rule.element_bytes);
  std::vector<Partition> out;
  for (const std::uint64_t tensor : module.tensors)
    for (std::uint64_t left = tensor; left > 0;) {
      const std::uint64_t numel = std::min(left, most);
      left -= numel;
      out.push_back({number, numel, left == 0});
    }
  return out;
}

// The library, which plays the partitions handed over to it one after the other.
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

// All partitions of a step in the order that holds once all are ready: module by module.
std::vector<Partition> in_order(std::span<const Module> modules, const PartitionRule& rule) {
  std::vector<Partition> out;
  for (std::size_t m = 0; m < modules.size(); ++m)
    for (const Partition& one : partitions_of(modules[m], m, rule)) out.push_back(one);
  return out;
}

struct Call {
  std::vector<Partition> partitions;
  std::uint64_t numel = 0;
};

struct PartitionPlan {
  std::vector<Module> modules;
  std::vector<Call> calls;
  Picoseconds before_forward = 0;
  DataType gradients;
  bool after_backward = false;
  Picoseconds until_cycle = 0, finish = 0;  // until a call's cycle; to finish a tensor; else 0
};

// A call for each partition; after the backward, for all that the credit lets go at once.
std::vector<Call> calls_of(const std::vector<Partition>& order, const PartitionRule& rule,
                           bool after_backward) {
  std::vector<Call> out;
  for (const Partition& one : order) {
    const bool joins =
        after_backward && !out.empty() && out.back().numel * rule.element_bytes < rule.credit;
    if (!joins) out.emplace_back();
    out.back().partitions.push_back(one);
    out.back().numel += one.numel;
  }
  return out;
}

// By module: whether its first partition to go waits for its backward. It need not if an earlier
// partition has waited for the backward of a module nearer to the input, which ends later.
std::vector<bool> awaited_backwards(const PartitionPlan& plan) {
  std::vector<bool> out(plan.modules.size());
  std::size_t reached = plan.modules.size();
  for (const Call& call : plan.calls)
    for (const Partition& one : call.partitions) {
      if (one.module >= reached) continue;
      out[one.module] = true;
      reached = one.module;
    }
  return out;
}

// What the host's poller does when a call has ended. On ranks but the first it walks backward
// through the call's tensors, so the front of the model is ready last.
void finish(const PartitionPlan& plan, const Call& call, ProgramBuilder& out) {
  const auto tensors = std::count_if(call.partitions.begin(), call.partitions.end(),
                                     [](const Partition& one) { return one.ends_tensor; });
  out.after(kHost, kComm);
  out.compute(kHost, "finish tensors", tensors * plan.finish);
}

Program iteration(const PartitionPlan& plan, bool inherits) {
  std::vector<std::string> streams{"compute", "comm"};
  if (plan.after_backward) streams.emplace_back("host");
  ProgramBuilder out(streams);
  for (std::size_t s = kComm; s < streams.size(); ++s) out.outlives(s);
  std::vector<std::size_t> left(plan.modules.size());  // partitions that have not gone yet
  for (const Call& call : plan.calls)
    for (const Partition& one : call.partitions) ++left[one.module];
  std::vector<std::uint32_t> reduced(plan.modules.size());
  out.compute(kCompute, "before the forward", plan.before_forward);
  for (std::size_t m = 0; m < plan.modules.size(); ++m) {
    const Module& module = plan.modules[m];
    if (left[m] > 0) reduced[m] = out.carried_event();
    if (left[m] > 0 && inherits) {
      out.wait_previous(kCompute, reduced[m]);
      out.compute(kCompute, "step " + module.name, module.optimizer);
    }
    out.compute(kCompute, "forward " + module.name, module.forward);
  }
  const std::vector<bool> awaited =
      plan.after_backward ? std::vector<bool>(plan.modules.size()) : awaited_backwards(plan);
  std::vector<std::optional<ProgramBuilder::Mark>> ended(plan.modules.size());
  for (std::size_t m = plan.modules.size(); m-- > 0;) {
    out.compute(kCompute, "backward " + plan.modules[m].name, plan.modules[m].backward);
    if (awaited[m]) ended[m] = out.mark(kCompute, kComm);
  }
  if (plan.after_backward) out.after(kComm, kCompute);
  std::size_t tensor = 0;
  for (const Call& call : plan.calls) {
    for (const Partition& one : call.partitions)
      if (ended[one.module]) out.wait(*std::exchange(ended[one.module], std::nullopt));
    out.pace(kComm, "cycle", plan.until_cycle);
    out.collective(kComm, "partition of " + plan.modules[call.partitions.front().module].name,
                   Func::all_reduce, kDataParallel, plan.gradients, call.numel, 0, ++tensor);
    if (plan.after_backward) finish(plan, call, out);
    for (const Partition& one : call.partitions)
      if (--left[one.module] == 0)
        out.record(plan.after_backward ? kHost : kComm, reduced[one.module]);
  }
  return out.take();
}

void check_launch(const JobSpec& spec) {
  const ParallelPlan& plan = spec.parallel;
  if (plan.launch == Launch::flat)
    throw Error(spec.source_of("parallel.launch") +
                ": bytescheduler hands over partition by partition; use overlap or after_backward");
  const bool after = plan.launch == Launch::after_backward;
  if (!after && plan.cycle_ms != ParallelPlan{}.cycle_ms)
    throw Error(spec.source_of("parallel.cycle_ms") +
                ": the bytescheduler of launch overlap plays no cycles; leave it out, or use "
                "parallel.launch=after_backward");
  if (after && plan.allreduce_cost != AllReduceCostModel::cluster)
    throw Error(spec.source_of("parallel.allreduce_cost") +
                ": after the backward every partition is ready and goes in the order of the "
                "modules, whatever a call costs; leave it out, or use parallel.launch=overlap");
}

}  // namespace

std::vector<Partition> partition_order(std::span<const Module> modules, const PartitionRule& rule,
                                       const AllReduceCost& cost) {
  const auto later = [](const auto& a, const auto& b) { return a.first > b.first; };
  using Entry = std::pair<std::pair<std::size_t, std::size_t>, Partition>;  // module, index in it
  std::priority_queue<Entry, std::vector<Entry>, decltype(later)> queue(later);
  std::vector<Partition> order;
  Link link(rule, cost);
  std::size_t next = modules.size();  // the module whose backward ended last
  double now = 0, ready = next > 0 ? seconds(modules[next - 1].backward) : kNever;
  while (next > 0 || !queue.empty()) {
    for (; next > 0 && ready <= now; --next) {
      std::size_t index = 0;
      for (const Partition& one : partitions_of(modules[next - 1], next - 1, rule))
        queue.push({{next - 1, index++}, one});
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
  check_launch(spec);
  const std::uint64_t partitions =
      spec.model->parameters() * rule.element_bytes / rule.partition + spec.model->tensors();
  if (partitions > kMostPartitions)
    throw Error(spec.source_of("parallel.partition_bytes") + ": a step would have " +
                std::to_string(partitions) + " partitions, at most " +
                std::to_string(kMostPartitions) +
                " are played; use a larger parallel.partition_bytes");
  const bool after_backward = spec.parallel.launch == Launch::after_backward;
  PartitionPlan plan{modules_of(*spec.model, step_times(spec)),
                     {},
                     spec.model->before_forward,
                     spec.precision.gradients,
                     after_backward};
  plan.modules.front().forward -= plan.before_forward;  // played before it
  if (after_backward) {
    plan.until_cycle = static_cast<Picoseconds>(
        std::llround(spec.parallel.cycle_ms / 2 * 1e3 * static_cast<double>(kPicosPerMicro)));
    plan.finish = kFinish + static_cast<Picoseconds>(spec.model->tensors()) * kLookup;
  }
  plan.calls = calls_of(after_backward ? in_order(plan.modules, rule)
                                       : partition_order(plan.modules, rule, assumed_cost(spec)),
                        rule, after_backward);
  return data_parallel_workload(spec,
                                {"bytescheduler", {iteration(plan, false), iteration(plan, true)}});
}

}  // namespace ghostrank
