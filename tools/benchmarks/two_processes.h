// Plays a job as two processes on loopback.
//
// Threading: forks; call it where no other thread runs.
#pragma once

#include <optional>

#include "tools/benchmarks/jobs.h"

namespace ghostrank::bench {

// Forks; the caller is process 0. Returns process 0's result, empty when either process failed.
std::optional<Result> play_as_two(const BenchJob& job);

// Pairs of ranks (i, i + ranks/2) over libfabric: the first of each pair sends the second `each`
// messages of `bytes` bytes. With two processes every pair has one rank on each.
BenchJob stream_job(int ranks, std::uint64_t each, std::uint64_t bytes);

inline constexpr char kLoopbackProvider[] = "net";

}  // namespace ghostrank::bench
