// Measures the kernels that jobs need, or those of a grid of usual sizes, on a GPU.
//
// To find the kernels, the jobs are planned on a device that records what planners ask for: exactly
// these sizes will be looked up. Kernels that move bytes are measured over a range of sizes;
// attention is not, since cuBLASLt has none (kineto_kernels.h).
//
// Units: seconds. Errors: Error(usage) for jobs that ask for no kernels; Error(environment) where a
// kernel fails. Threading: one thread.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "profiles/device/kernels/demand.h"
#include "profiles/device/kernels/measured.h"
#include "profiles/load/load.h"
#include "tools/calibrate/cuda_library.h"

namespace ghostrank {

// The kernels that the planner of `job` looks up for a GPU with that many multiprocessors.
KernelDemand demand_of(const LoadedJob& job, int multiprocessors);

// Square and oblong products in powers of two, as between the sizes of usual models.
KernelDemand usual_demand(OperandType type);

// The same products with operands of these types.
std::set<ProductShape> in_types(const std::set<ProductShape>& products,
                                const std::vector<OperandType>& types);

struct KernelMeasurement {
  KernelTables tables;
  double start = 0, host_start = 0;   // from a kernel's start to the next; the host's launch
  int least_mhz = 0, most_mhz = 0;    // of the multiprocessors, while products ran; 0: unknown
  int least_runs = 0;                 // of any kernel
  std::vector<std::string> left_out;  // products that this GPU does not have, and why
};

KernelMeasurement measure_kernels(const CudaGpu& gpu, const std::set<ProductShape>& products,
                                  const Effort& effort);

}  // namespace ghostrank
