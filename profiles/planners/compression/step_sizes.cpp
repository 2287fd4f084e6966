#include "profiles/planners/compression/step_sizes.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "collectives/tensor_content.h"

namespace ghostrank {
namespace {

// A tensor that a program reduces, and the group that does.
struct Reduced {
  std::uint32_t tensor = 0, group = 0;
};

// In the order of the program.
std::vector<Reduced> reduced_by(const Workload& workload, const Program& program) {
  std::vector<Reduced> all;
  for (const OpList& stream : program.streams)
    for (const Op& op : stream) {
      if (op.kind != Op::Kind::collective || op.tensor == 0 || op.count == 0) continue;
      const auto group = std::find_if(workload.groups.begin(), workload.groups.end(),
                                      [&](const Group& g) { return g.kind == op.group; });
      all.push_back({op.tensor, static_cast<std::uint32_t>(group - workload.groups.begin())});
    }
  return all;
}

// By step kEnough sizes are steady, and later steps repeat the last. But all steps count if the run
// is verified (ranks measure every step), if recorded steps differ, or if laws drift.
std::uint32_t steps_of(const JobSpec& spec, const Workload& workload) {
  constexpr int kEnough = 64;
  const int all = std::max(1, spec.run.warmup + spec.run.iterations);
  const bool every = spec.run.verify || !workload.order.empty() || spec.gradients.drift();
  return every ? all : std::min(all, kEnough);
}

const Program& program_in(const Workload& workload, std::uint32_t step) {
  const std::vector<Program>& programs = workload.roles.front().iterations;
  return programs[std::min(program_number(workload, step), programs.size() - 1)];
}

}  // namespace

StepSizes::StepSizes(const JobSpec& spec, const Workload& workload, std::vector<std::uint64_t> rows,
                     std::uint64_t tensors)
    : spec_(spec),
      method_(*spec.compression->method),
      rows_(std::move(rows)),
      ranks_(workload.ranks),
      steps_(steps_of(spec, workload)),
      samples_(spec, tensors * steps_) {
  if (spec.run.verify && carries_gradients(spec)) play_together(workload);
}

StepSizes::ByRank StepSizes::of(std::uint32_t step, std::uint32_t group, int ranks,
                                const CompressedTensor& tensor) {
  if (!sizes_.contains(tensor.tensor)) sizes_[tensor.tensor] = alone(group, ranks, tensor);
  return sizes_[tensor.tensor][step];
}

CompressionOptions StepSizes::options(std::uint32_t step, std::uint32_t group, std::uint32_t tensor,
                                      GroupRank rank) const {
  CompressionOptions options = spec_.compression->options;
  options.shared_seed = tensor_key(spec_.run.seed, group, tensor, step);
  options.seed = rank_seed(options.shared_seed, rank);
  options.rows = tensor <= rows_.size() ? rows_[tensor - 1] : 0;
  return options;
}

// Plays all ranks with all of their gradients.
void StepSizes::play_together(const Workload& workload) {
  const auto ranges = tensor_ranges(spec_, workload);
  const std::uint64_t elements = elements_of(ranges);
  const auto task = make_task(spec_, ranks_, elements);
  std::vector<GradientState> states;
  for (GroupRank r = 0; r < ranks_; ++r) states.emplace_back(spec_, elements, task.get(), r);
  for (const auto& [tensor, range] : ranges) sizes_[tensor].resize(steps_);
  for (std::uint32_t step = 0; step < steps_; ++step) {
    for (GradientState& state : states) state.begin(step);
    for (const Reduced& reduced : reduced_by(workload, program_in(workload, step))) {
      const TensorRange range = ranges.at(reduced.tensor);
      std::vector<std::vector<float>> tensors, backs;
      std::vector<float> sum(range.elements);
      for (GroupRank r = 0; r < ranks_; ++r) {
        const CompressionOptions own = options(step, reduced.group, reduced.tensor, r);
        std::vector<float>& tensor = tensors.emplace_back(range.elements);
        if (!task) spec_.gradients.draw(own.seed, step, range.first, range.elements, tensor);
        states[r].compensate(range, tensor);
        sizes_[reduced.tensor][step].push_back(method_.measure(tensor, own));
        std::vector<float>& back = backs.emplace_back(range.elements);
        method_.decompress(payload_of(method_, tensor, own), own, back);
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += back[i];
      }
      for (std::size_t r = 0; r < states.size(); ++r)
        states[r].finish(range, tensors[r], backs[r], sum, ranks_, method_.majority);
    }
  }
}

// Plays one tensor, or a part that stands for the whole tensor.
StepSizes::BySteps StepSizes::alone(std::uint32_t group, int ranks,
                                    const CompressedTensor& tensor) const {
  const DrawnPart sample = samples_.of(tensor.elements);
  const std::uint64_t part = sample.elements;
  const int played = std::min(ranks, sample.ranks);
  const bool carries = carries_gradients(spec_);
  BySteps sizes(steps_, ByRank(ranks));
  for (GroupRank r = 0; r < played; ++r) {
    GradientState state(spec_, part, nullptr, r);
    std::vector<float> gradient, back;
    for (std::uint32_t step = 0; step < steps_; ++step) {
      const CompressionOptions own = options(step, group, tensor.tensor, r);
      gradient.resize(part);
      spec_.gradients.draw(own.seed, step, tensor.first, tensor.elements, gradient);
      if (carries) state.compensate({0, part}, gradient);
      complete_norm(gradient, tensor.elements, own);
      const std::uint64_t measured = method_.measure(gradient, own);
      if (carries) {
        back.resize(gradient.size());
        method_.decompress(payload_of(method_, gradient, own), own, back);
        const std::span<const float> got = std::span(back).first(part);
        state.finish({0, part}, std::span(gradient).first(part), got, got, ranks, false);
      }
      sizes[step][r] = payload_of_whole(measured, part, tensor.elements);
    }
  }
  for (ByRank& by_rank : sizes)
    for (std::size_t r = played; r < by_rank.size(); ++r) by_rank[r] = by_rank[r % played];
  return sizes;
}

}  // namespace ghostrank
