// The plan of several calls in one ncclGroup on one communicator: NCCL plans them together. Derived
// from NCCL's source (2.28.9, 2.30.7); traced.h says what was recorded.
//
//   submitted      A 4 MiB   B 1 KiB   C 3 MiB    all all-reduces of the same type and operator
//   order          B | C A                        from small to large
//   decided        B alone; C and A together, because they are within four times of each other
//   channels       B 0, C 0..6, A 6..15           neighbours share a channel
//
// Threading: pure functions.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "collectives/nccl/nccl.h"

namespace ghostrank {

// Channels, summed over the calls, that fit one launch even with the smallest kernel arguments.
inline constexpr int kNcclCallChannelsOfLaunch = 200;

// The plans of the calls, in the order in which NCCL plans them; `order` gives the position of each
// in `calls`. All are calls of the communicator's whole group. Throws std::invalid_argument for
// calls that NCCL cannot serve, that may need several launches, or that NCCL plans in another way
// (2.30's broadcasts of several roots). `algorithm`: of all calls; empty: the tuner's choices.
struct NcclGroupPlan {
  std::vector<NcclPlan> plans;
  std::vector<std::size_t> order;
};
NcclGroupPlan nccl_group_plan(NcclVersion version, std::span<const Collective> calls,
                              const Communicator& comm,
                              std::optional<NcclAlgorithm> algorithm = {});

// Whether calls of the function are planned together. Those that consist of sends and receives need
// not be: their channels and messages do not depend on others of the group.
constexpr bool nccl_plans_together(Func func) {
  return reduces(func) || func == Func::all_gather || func == Func::broadcast;
}

}  // namespace ghostrank
