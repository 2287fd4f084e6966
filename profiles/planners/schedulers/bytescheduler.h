// ByteScheduler as Programs: tensors are cut into partitions, and the partition that the next
// forward needs first goes first.
//
//   compute   | fwd 0 | fwd 1 | .. | bwd n | .. | bwd 0 || fwd 0 | fwd 1 | ..
//   comm                                   [n.0][n.1]..[0.0][n.2]  ..      outlives the iteration
//
// Partitions that are ready wait in a queue, the lowest module first. The queue hands them to the
// library while those under way fit the credit (one may always go); the library plays them in the
// order in which it got them. So a partition overtakes those still queued, not those handed over.
// The forward of a module waits for its partitions of the previous iteration, and steps its
// parameters first. A credit of 0 is P3's order: slices by priority, one after the other.
//
// With `launch: after_backward` it is played as its code for PyTorch runs where steps end in
// torch.cuda.synchronize(). PyTorch 1.4 keeps the interpreter from other threads meanwhile, so rank
// 0 hands nothing over until its backward has ended. Then all is ready, and Horovod fuses what the
// credit lets go into one call, in its next cycle, which is half a cycle away on average. When a
// call has ended, a thread in Python steps its tensors one by one.
//
//   compute   | bwd n | .. | bwd 0 ||                          | fwd 0 | fwd 1 | ..
//   comm                            [cycle][0.0 .. 3.1][cycle][3.2 .. n.0]
//   host                                               [steps]            [steps]
//
// All ranks must make their calls in one order, which ByteScheduler's rank 0 decides while it runs.
// Here it follows from the layers' computed times and the assumed cost of an all-reduce (fusion.h),
// and so it is the same in every step. Threading: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profiles/job/job.h"
#include "profiles/planners/schedulers/fusion.h"
#include "profiles/planners/schedulers/modules.h"

namespace ghostrank {

struct Partition {
  std::size_t module = 0;
  std::uint64_t numel = 0;
  bool ends_tensor = true;  // the tensor's last
};

struct PartitionRule {
  std::uint64_t partition = 0, credit = 0;  // bytes
  std::uint32_t element_bytes = 4;
};

// All partitions of a step, in the order in which they are handed to the library.
std::vector<Partition> partition_order(std::span<const Module> modules, const PartitionRule& rule,
                                       const AllReduceCost& cost);

Workload plan_bytescheduler(const JobSpec& spec);

}  // namespace ghostrank
