// Compression of gradients: a job's `compression:` keys, and the pass that inserts it into a plan.
//
// clang-format off
//   all-reduce of bucket 3   ->   compress | all-gather of 8 k bytes | decompress n payloads
//                            or   compress | all-reduce of payloads  | decompress
//                            or   compress | all-gather of lengths | all-gather-v | decompress n
//                            or   compress | all-reduce of P | all-reduce of Q | decompress
// clang-format on
//
// A collective that names a tensor becomes these three ops on its own stream (compress and
// decompress are computes), as with a DDP communication hook. The pass takes plans that all-reduce
// whole gradients: those of DDP, Horovod and (MG-)WFBP. After a reduce-scatter every rank has one
// part of the sum, but a payload encodes a whole tensor.
//
// If the data decide how much a rank sends, the plan draws its gradients (tensors.distribution,
// each part of a tensor by its own law) and asks the method for the size of their payload. Sizes
// differ from rank to rank; from step to step only if ranks have a memory or laws drift.
//
// Threading: pure functions.
#pragma once

#include <optional>

#include "profiles/input/keys.h"
#include "profiles/job/job.h"

namespace ghostrank {

class Algorithms;

// Empty if the job asks for none. A file of costs is looked for from `folder`. Throws Error(usage)
// for an unknown method or a communicator that does not suit it.
std::optional<CompressionSpec> read_compression(const Settings& in, const Algorithms& own,
                                                const DeviceProfile& device,
                                                const std::string& folder);

// Does nothing without spec.compression. Throws Error(usage) if the framework does not all-reduce
// whole gradients, or if their type cannot be compressed.
void compress(const JobSpec& spec, Workload& workload);

// For a job with a given program: throws Error(usage) unless compressed tensors and `compression`
// occur together.
void check_compressed(const JobSpec& spec, const Workload& workload);

}  // namespace ghostrank
