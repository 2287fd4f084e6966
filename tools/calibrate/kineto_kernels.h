// Kernels as PyTorch's profiler recorded them (Kineto's Chrome traces, with record_shapes), as
// tables of measured kernels.
//
// A kernel belongs to the op that launched it ("External id"); the op's input shapes say which size
// it was, its name which kind. Times are the medians of all kernels of a kind, type and size, with
// the usual gap to the next kernel on their stream, as measured kernels have it.
//
// Units: seconds, bytes. Errors: Error(usage) "FILE:LINE: what; what to do", also for traces
// without shapes. Threading: pure functions of the files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "profiles/device/measured_kernels.h"

namespace ghostrank {

struct KinetoKernels {
  KernelTables tables;
  std::string gpu;                                // as the traces name it; empty: they do not
  std::map<std::string, std::uint64_t> left_out;  // kernels, by reason
};

KinetoKernels read_kineto_kernels(const std::vector<std::string>& paths);

// What was recorded ran among the kernels of training, at their clocks, which are lower than those
// of kernels measured alone.
struct TrainingPace {
  double slower = 1;      // the median ratio of products of sizes that both have
  std::size_t sizes = 0;  // so many of them; with too few to say, `slower` is 1
};

// Puts what was recorded into tables that were measured. It goes before what was measured of the
// same size, and products of other sizes are brought to its pace. Kinds of transfers replace
// theirs, but `elementwise` only where they have none, since the kernels of that name differ a
// little.
TrainingPace add_recorded(const KernelTables& recorded, KernelTables& tables);

}  // namespace ghostrank
