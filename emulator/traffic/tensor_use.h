// How much of the tensors that a job's collectives reduce is nonzero, and how much of them is sent
// if they are compressed.
//
// Threading: pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/result/result.h"
#include "profiles/job/job.h"

namespace ghostrank {

// Returns the use by all ranks of a job in one iteration, as drawn; for tensors with embedding
// tables, the mean. Empty if the job's tensors are dense.
std::optional<TensorUse> tensor_use(const JobSpec& spec, const Workload& workload,
                                    std::uint32_t iteration, std::size_t job = 0);

// Returns the use by one rank of a job in an iteration: the mean of `count` iterations, which is
// that of the first unless they differ. Empty if nothing is compressed.
std::optional<CompressionUse> compression_use(const JobSpec& spec, const Workload& workload,
                                              std::uint32_t iteration, std::size_t job = 0,
                                              std::uint32_t count = 1);

}  // namespace ghostrank
