// How much ranks send of their tensors step by step, if sizes depend on the data and steps differ:
// laws of gradients drift, or ranks carry something from step to step, a memory or weights that
// they learn. Steps with something to carry are played here beforehand, tensor by tensor and rank
// by rank, as the engine's ranks will play them: gathered payloads are added up in the same order
// everywhere, so that the sizes are those of real data.
//
// Unless a run is verified, a part of each tensor, with a memory of its own, stands for the tensor.
//
// Units: steps are iterations, warm-up included; sizes are elements of payloads. Threading: pure.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "profiles/job/job.h"
#include "profiles/planners/compression/samples.h"
#include "profiles/training/gradient_state.h"

namespace ghostrank {

class StepSizes {
 public:
  using ByRank = std::vector<std::uint64_t>;

  // `workload`: before it is compressed. `rows`: of the tensors, by number from 1; missing:
  // unknown. `tensors`: number of those that a step reduces.
  StepSizes(const JobSpec& spec, const Workload& workload, std::vector<std::uint64_t> rows,
            std::uint64_t tensors);

  // Number of steps that differ; later ones repeat the last.
  std::uint32_t steps() const { return steps_; }
  // Sizes by rank of the group, which has `ranks` ranks.
  ByRank of(std::uint32_t step, std::uint32_t group, int ranks, const CompressedTensor& tensor);

 private:
  using BySteps = std::vector<ByRank>;

  void play_together(const Workload& workload);
  BySteps alone(std::uint32_t group, int ranks, const CompressedTensor& tensor) const;
  // Options of the method for the rank's draws for the tensor in the step.
  CompressionOptions options(std::uint32_t step, std::uint32_t group, std::uint32_t tensor,
                             GroupRank rank) const;

  const JobSpec& spec_;
  const Compressor& method_;
  const std::vector<std::uint64_t> rows_;
  const int ranks_;  // of the job
  const std::uint32_t steps_;
  const DrawnParts samples_;
  std::map<std::uint32_t, BySteps> sizes_;  // by tensor; by step, empty where it is not reduced
};

}  // namespace ghostrank
