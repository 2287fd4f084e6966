// What one rank carries from step to step: its gradient memory, and the weights that it learns.
// Tensors are ranges of all gradients in the order in which a program reduces them, so that a
// memory follows its gradients when DDP makes other buckets of them.
//
//   begin(step) | for each tensor: compensate | exchange | finish
//
// Weights move as sums arrive, but all gradients of a step are computed from the weights at its
// begin. A sum over P ranks moves weights by -rate / P * sum, times 1 - m if the memory has a
// momentum m, so that a gradient moves weights as far in the end as with other methods. A majority
// vote moves weights by -vote * sign.
//
// Units: elements. Threading: one owner. Memory: that of the GradientMemory; 8 bytes a weight.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "collectives/compress/memory.h"
#include "collectives/compressor.h"
#include "profiles/job/job.h"
#include "profiles/training/logistic.h"

namespace ghostrank {

// A tensor's range of all gradients.
struct TensorRange {
  std::uint64_t first = 0, elements = 0;
  bool operator==(const TensorRange&) const = default;
};

// The ranges of all tensors, by number. Throws Error(usage) unless every program reduces the same
// gradients, over all ranks.
std::map<std::uint32_t, TensorRange> tensor_ranges(const JobSpec& spec, const Workload& workload);
std::uint64_t elements_of(const std::map<std::uint32_t, TensorRange>& ranges);

// True if ranks of the job carry something from step to step.
bool carries_gradients(const JobSpec& spec);
// True if payload sizes that depend on the data differ from step to step: ranks carry something, or
// laws drift.
bool steps_differ(const JobSpec& spec);
// Throws Error(usage) if the samples of all ranks would take more than 1 GiB.
void check_task(const JobSpec& spec, int ranks, std::uint64_t elements);
// Returns the task that the ranks learn; null: the job has none.
std::unique_ptr<const LogisticTask> make_task(const JobSpec& spec, int ranks,
                                              std::uint64_t elements);

class GradientState {
 public:
  // `task` outlives this object and its copies.
  GradientState(const JobSpec& spec, std::uint64_t elements, const LogisticTask* task,
                GroupRank rank);

  void begin(std::uint32_t step);
  // Lets the memory change `gradient` for compression; a task first overwrites it with its own.
  void compensate(const TensorRange& range, std::span<float> gradient);
  // Updates memory and weights. `tensor`: before compression; `own`: this rank's payload,
  // decompressed; `sum`: that of all ranks' payloads; `vote`: it is a majority of signs.
  void finish(const TensorRange& range, std::span<const float> tensor, std::span<const float> own,
              std::span<const float> sum, int ranks, bool vote);

  std::span<const float> weights() const { return weights_; }
  std::span<const float> kept() const { return memory_.kept(); }

 private:
  TrainingSpec training_;
  const LogisticTask* task_;
  GroupRank rank_;
  GradientMemory memory_;
  std::vector<float> weights_, gradient_;  // gradient_: of the step
  std::uint32_t step_ = 0;
  bool made_ = false;  // gradient_ is that of step_
};

}  // namespace ghostrank
