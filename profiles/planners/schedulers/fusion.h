// Rules by which schedulers fuse gradients, and the linear cost of an all-reduce that two of them
// assume.
//
//   registration  | m0 m1 m2 | m3 | m4 m5 |      groups are runs of modules (or tensors)
//   backward                          <----
//
// DeAR fuses modules by size, walking forward: a module joins while the sum stays below the
// threshold, so a module above it stands alone. Its other rules: so many modules a group; or
// whatever becomes ready within a time, walking backward. Modules without parameters join their
// neighbours, so no group is empty.
//
// MG-WFBP merges a tensor's call into the next one of the backward if the next gradient is ready
// before the call would end, and either the link is busy until then or the wait is shorter than
// alpha, a call's fixed cost. It merges tiny calls always. The rules follow the authors' published
// code (dear_pytorch, MG-WFBP). Threading: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profiles/job/job.h"
#include "profiles/planners/schedulers/modules.h"

namespace ghostrank {

struct FusedGroup {
  std::size_t first = 0, end = 0;  // [first, end) of the list that was fused
  std::uint64_t numel = 0;
  bool operator==(const FusedGroup&) const = default;
};

// `threshold` in bytes, above 0.
std::vector<FusedGroup> fuse_by_size(std::span<const Module> modules, std::uint32_t element_bytes,
                                     double threshold);
std::vector<FusedGroup> fuse_by_count(std::span<const Module> modules, std::size_t count);
// A group takes the modules whose backward ends within `time` of that of its first to end.
std::vector<FusedGroup> fuse_by_waiting(std::span<const Module> modules, Picoseconds time);

// Seconds of an all-reduce of so many bytes: alpha + beta bytes.
struct AllReduceCost {
  double alpha = 0, beta = 0;
  double seconds(double bytes) const { return alpha + beta * bytes; }
};

// The cost that the job's scheduler assumes: a ring over the job's slowest link, or the one that
// MG-WFBP's authors fitted for the number of ranks (parallel.allreduce_cost). Throws Error(usage)
// where they fitted none.
AllReduceCost assumed_cost(const JobSpec& spec);

// MG-WFBP's rule. Groups are in registration order. A call of fewer than `tiny` elements is always
// merged.
inline constexpr std::uint64_t kTinyCall = 8192;
std::vector<FusedGroup> merge_calls(std::span<const ReadyTensor> tensors,
                                    std::uint32_t element_bytes, const AllReduceCost& cost,
                                    std::uint64_t tiny = kTinyCall);

}  // namespace ghostrank
