// Compression of gradients: `compression:` of a job, and the pass over a plan that puts it there.
//
//   all-reduce of bucket 3   ->   compute: compress | all-gather of 8 k bytes | compute: decompress
//   n
//                            or   compute: compress | all-reduce of payloads  | compute: decompress
//
// A call that names a tensor becomes those three on its own stream, as a communication hook's do.
// It takes plans whose gradients are all-reduced whole: DDP's and Horovod's. Where they are
// scattered every rank gets another part of the sum, which no payload of a whole tensor has.
//
// Threading: pure functions.
#pragma once

#include <optional>

#include "profiles/input/keys.h"
#include "profiles/job/job.h"

namespace ghostrank {

class Algorithms;

// Empty: none.
std::optional<CompressionSpec> read_compression(const Settings& in, const Algorithms& own);

// Throws Error(usage) where it does not compose.
void compress(const JobSpec& spec, Workload& workload);

// Of programs that were compressed before: that the job still says how.
void check_compressed(const JobSpec& spec, const Workload& workload);

}  // namespace ghostrank
