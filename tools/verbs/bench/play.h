// The two halves of `ghostrank bench`: a collective over sizes, and patterns of flows. Each plays a
// session on every process of the job; process 0 prints the tables and writes the files.
//
// Threading: main thread.
#pragma once

#include "tools/arguments.h"
#include "tools/verbs/bench/flags.h"

namespace ghostrank {

// Return the exit status. Throw Error for a mistake that is found before anything is played.
int bench_collective(const Argv& argv, const BenchFlags& flags, Func func, const World& world);
int bench_pattern(const BenchFlags& flags, const World& world);

bool is_pattern(const std::string& what);  // pairs, permutation, incast, bisection

// Mean seconds of one iteration by nccl-tests' -a: 0: of rank 0, 1: the mean over ranks, 2: the
// least, 3: the greatest. 0 when no iteration ended.
double call_seconds(const std::vector<IterationReport>& iterations, int average);

}  // namespace ghostrank
