// The two halves of `ghostrank bench`: a collective over sizes, and patterns of flows. Each plays a
// session on every process of the job; process 0 prints and writes.
//
// Threading: main thread.
#pragma once

#include "tools/arguments.h"
#include "tools/verbs/bench/flags.h"

namespace ghostrank {

// Return the exit status. Throw Error for what is wrong before anything is played.
int bench_collective(const Argv& argv, const BenchFlags& flags, Func func, const World& world);
int bench_pattern(const BenchFlags& flags, const World& world);

bool is_pattern(const std::string& what);  // pairs, permutation, incast, bisection

// Mean time of one iteration by nccl-tests' -a: of rank 0, the mean over ranks, the least, the
// greatest. 0 when none ended.
double call_seconds(const std::vector<IterationReport>& iterations, int average);

}  // namespace ghostrank
