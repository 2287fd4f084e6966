#include "profiles/training/gradient_state.h"

#include <algorithm>
#include <memory>
#include <string>

#include "profiles/error.h"

namespace ghostrank {
namespace {

std::string who_carries(const JobSpec& spec) {
  if (spec.training) return spec.source_of("training.task") + ": what ranks learn";
  if (carries_gradients(spec))
    return spec.source_of("compression.memory") + ": what a memory keeps";
  return spec.source_of("tensors.distribution") + ": a law of some tensors";
}

void check_group(const JobSpec& spec, const Workload& workload, const Op& op) {
  for (const Group& group : workload.groups)
    if (group.kind == op.group && static_cast<int>(group.members.size()) != workload.ranks)
      throw Error(who_carries(spec) +
                  " is of gradients that all ranks reduce together; here a communicator has " +
                  std::to_string(group.members.size()) + " of " + std::to_string(workload.ranks) +
                  " ranks");
}

}  // namespace

bool carries_gradients(const JobSpec& spec) {
  return spec.training || (spec.compression && spec.compression->memory != Memory::none);
}

bool steps_differ(const JobSpec& spec) { return carries_gradients(spec) || spec.gradients.drift(); }

std::map<std::uint32_t, TensorRange> tensor_ranges(const JobSpec& spec, const Workload& workload) {
  std::map<std::uint32_t, TensorRange> ranges;
  std::uint64_t all = 0;
  const auto refuse = [&] {
    throw Error(who_carries(spec) +
                " follows gradients from step to step, but this job reduces others in one step "
                "than in another");
  };
  for (const Role& role : workload.roles)
    for (const Program& program : role.iterations) {
      std::map<std::uint32_t, TensorRange> here;
      std::uint64_t end = 0;
      for (const OpList& stream : program.streams)
        for (const Op& op : stream) {
          if (op.kind != Op::Kind::collective || op.tensor == 0) continue;
          const CompressedTensor* whole = compressed_tensor(workload, op);
          const std::uint64_t elements = whole ? whole->elements : op.count;
          if (elements == 0 || !here.insert({number_of(op.tensor), {end, elements}}).second)
            continue;
          check_group(spec, workload, op);
          end += elements;
        }
      if (end == 0) continue;
      if (all != 0 && end != all) refuse();
      all = end;
      for (const auto& [tensor, range] : here)
        if (ranges.insert({tensor, range}).first->second != range) refuse();
    }
  return ranges;
}

std::uint64_t elements_of(const std::map<std::uint32_t, TensorRange>& ranges) {
  std::uint64_t all = 0;
  for (const auto& [tensor, range] : ranges) all = std::max(all, range.first + range.elements);
  return all;
}

void check_task(const JobSpec& spec, int ranks, std::uint64_t elements) {
  if (!spec.training) return;
  constexpr double kMost = 1 << 28;  // numbers
  const double numbers = static_cast<double>(elements) * ranks * spec.training->samples;
  if (numbers > kMost)
    throw Error(spec.source_of("training.task") + ": " + std::to_string(elements) +
                " weights are too many to learn from " + std::to_string(spec.training->samples) +
                " samples on each of " + std::to_string(ranks) +
                " ranks, which would take more than 1 GiB; use a smaller model");
}

std::unique_ptr<const LogisticTask> make_task(const JobSpec& spec, int ranks,
                                              std::uint64_t elements) {
  if (!spec.training) return nullptr;
  return std::make_unique<const LogisticTask>(ranks, spec.training->samples, elements,
                                              spec.run.seed);
}

GradientState::GradientState(const JobSpec& spec, std::uint64_t elements, const LogisticTask* task,
                             GroupRank rank)
    : training_(spec.training.value_or(TrainingSpec{})),
      task_(task),
      rank_(rank),
      memory_(spec.compression ? spec.compression->memory : Memory::none, elements),
      weights_(task ? elements : 0) {}

void GradientState::begin(std::uint32_t step) {
  if (step != step_) made_ = false;
  step_ = step;
}

void GradientState::compensate(const TensorRange& range, std::span<float> gradient) {
  if (task_) {
    if (!made_) gradient_ = task_->gradient(rank_, weights_);
    made_ = true;
    std::copy_n(gradient_.begin() + static_cast<std::ptrdiff_t>(range.first), gradient.size(),
                gradient.begin());
  }
  memory_.compensate(range.first, gradient);
}

void GradientState::finish(const TensorRange& range, std::span<const float> tensor,
                           std::span<const float> own, std::span<const float> sum, int ranks,
                           bool vote) {
  memory_.keep(range.first, tensor, own);
  if (!task_) return;
  const auto lasting = static_cast<float>(1 - momentum_of(memory_.kind()));
  const float rate = vote ? static_cast<float>(training_.vote)
                          : static_cast<float>(training_.rate / ranks) * memory_.scale() * lasting;
  float* const weights = weights_.data() + range.first;
  for (std::size_t i = 0; i < sum.size(); ++i) weights[i] -= rate * sum[i];
}

}  // namespace ghostrank
