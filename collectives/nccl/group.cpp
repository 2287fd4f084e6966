#include "collectives/nccl/group.h"

#include <algorithm>
#include <stdexcept>

namespace ghostrank {
namespace {

// NCCL plans the calls of one function, operator and type one after the other. Its kernels have one
// operator for min and max, and one for averages of floats and pre-multiplied sums. All-gathers and
// broadcasts are of bytes.
int kind_of(const Collective& c) {
  if (!reduces(c.func)) return 0;
  const Reduction op = c.reduction == Reduction::min                    ? Reduction::max
                       : c.reduction == Reduction::avg && !c.integers() ? Reduction::pre_mul_sum
                                                                        : c.reduction;
  return 1 + 2 * static_cast<int>(op) + (c.integers() ? 1 : 0);
}

NcclGroupTask task_of(const Collective& c) {
  NcclGroupTask out{{c.func, c.size, c.count, c.element_bytes}, kind_of(c)};
  if (!reduces(c.func)) {
    out.task.count *= out.task.element_bytes;
    out.task.element_bytes = 1;
  }
  return out;
}

bool by_nvls(NcclAlgorithm algorithm) {
  return algorithm == NcclAlgorithm::nvls || algorithm == NcclAlgorithm::nvls_tree;
}
bool by_nvls(const NcclPlan& plan) { return by_nvls(plan.algorithm); }

[[noreturn]] void refuse_size() {
  throw std::invalid_argument("so many calls in a group may take several launches");
}

void check(NcclVersion version, std::span<const Collective> calls) {
  if (calls.size() > kNcclCallChannelsOfLaunch) refuse_size();
  const auto other_root = [&](const Collective& c) {
    return c.func == Func::broadcast &&
           std::any_of(calls.begin(), calls.end(), [&](const Collective& other) {
             return other.func == Func::broadcast && other.root != c.root;
           });
  };
  if (version == NcclVersion::v2_30 && std::any_of(calls.begin(), calls.end(), other_root))
    throw std::invalid_argument(
        "NCCL 2.30 makes broadcasts of several roots in a group one all-gather-v, which is not "
        "modelled");
}

// Decides algorithm, protocol and channels of the calls of a run by their sum.
NcclChoice decide(NcclVersion version, std::span<const Collective> calls,
                  std::span<const std::size_t> run, const Communicator& comm,
                  std::optional<NcclAlgorithm> algorithm) {
  Collective sum = calls[run.front()];
  std::uint64_t bytes = 0;
  for (const std::size_t i : run) bytes += calls[i].count * calls[i].element_bytes;
  sum.count = bytes / sum.element_bytes;
  const NcclPlan plan = nccl_undecided(version, sum, comm);
  NcclTunerInput input = nccl_tuner_input(plan, comm);
  if (algorithm) input.overrides.algorithms = name_of(*algorithm);
  const std::size_t channels = plan.channels;
  input.calls_per_channel = static_cast<int>((calls.size() + channels - 1) / channels);
  return nccl_choose(input);
}

// Splits the calls of one kind, NVLS or not, over the channels.
void split(NcclVersion version, std::vector<NcclPlan>& plans, bool nvls) {
  std::vector<NcclTask> tasks;
  int channels = 0;
  for (const NcclPlan& plan : plans) {
    if (by_nvls(plan) != nvls) continue;
    tasks.push_back(plan.task);
    channels = plan.channels;
  }
  if (tasks.empty()) return;
  const std::vector<NcclSplit> splits = nccl_split(tasks, channels, version);
  auto next = splits.begin();
  for (NcclPlan& plan : plans)
    if (by_nvls(plan) == nvls) plan.split = *next++;
}

}  // namespace

NcclGroupPlan nccl_group_plan(NcclVersion version, std::span<const Collective> calls,
                              const Communicator& comm, std::optional<NcclAlgorithm> algorithm) {
  check(version, calls);
  std::vector<NcclGroupTask> tasks;
  for (const Collective& c : calls) tasks.push_back(task_of(c));
  const NcclGroupOrder order = nccl_group_order(tasks);
  NcclGroupPlan out;
  for (std::size_t begin = 0, end = 0; begin < order.order.size(); begin = end) {
    while (end < order.order.size() && order.run[end] == order.run[begin]) ++end;
    const auto run = std::span(order.order).subspan(begin, end - begin);
    const NcclChoice choice = decide(version, calls, run, comm, algorithm);
    Communicator decided = comm;
    decided.protocol = choice.protocol;
    // NVLS and NVLSTree use all of their own channels.
    if (by_nvls(choice.algorithm)) decided.max_channels = 0;
    if (!by_nvls(choice.algorithm) && comm.max_channels == 0)
      decided.max_channels = choice.max_channels;
    for (const std::size_t i : run) {
      out.plans.push_back(nccl_plan(version, choice.algorithm, calls[i], decided));
      out.order.push_back(i);
    }
  }
  // NCCL plans the calls that use the NVLink switch last, again from the first channel on.
  for (const bool nvls : {false, true}) split(version, out.plans, nvls);
  std::vector<std::size_t> at(out.plans.size());
  for (std::size_t i = 0; i < at.size(); ++i) at[i] = i;
  std::stable_partition(at.begin(), at.end(),
                        [&](std::size_t i) { return !by_nvls(out.plans[i]); });
  NcclGroupPlan sorted;
  int channels = 0;
  for (const std::size_t i : at) {
    sorted.plans.push_back(std::move(out.plans[i]));
    sorted.order.push_back(out.order[i]);
    channels += sorted.plans.back().split.channels;
  }
  if (channels > kNcclCallChannelsOfLaunch) refuse_size();
  return sorted;
}

}  // namespace ghostrank
