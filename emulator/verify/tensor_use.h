// How much of the tensors that a job's collectives sum up is not zero, and how much of them is sent
// where they are compressed.
//
// Threading: pure function.
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/result/result.h"
#include "profiles/job/job.h"

namespace ghostrank {

// In an iteration, as it is drawn. Empty where no block is zero.
std::optional<TensorUse> tensor_use(const JobSpec& spec, const Workload& workload,
                                    std::uint32_t iteration);

// Of one rank in an iteration. Empty where nothing is compressed.
std::optional<CompressionUse> compression_use(const JobSpec& spec, const Workload& workload,
                                              std::uint32_t iteration);

}  // namespace ghostrank
