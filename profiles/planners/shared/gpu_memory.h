// What a GPU's memory holds at its fullest point of a training step.
//
// Units: bytes of one GPU. Threading: plain values.
#pragma once

#include "collectives/common/data_type.h"
#include "profiles/job/job.h"
#include "profiles/job/optimizer.h"

namespace ghostrank {

struct GpuMemory {
  double weights = 0, gradients = 0;
  double optimizer = 0;    // moments, an fp32 copy of weights of another type, K-FAC's matrices
  double activations = 0;  // kept for the backward pass
  double total() const { return weights + gradients + optimizer + activations; }
};

// Bytes of optimizer state per parameter: its moments, and an fp32 copy of weights of another type.
inline double optimizer_bytes(const Precision& precision) {
  return 4 * (moments_of(precision) + (precision.parameters == DataType::float32 ? 0 : 1));
}

}  // namespace ghostrank
