// Whether NCCL's schedules on a communicator were compared with NCCL itself. tests/nccl_trace
// records what NCCL sends on one GPU, where every rank is a node of its own: rings, trees and PAT
// in every protocol, sends and receives, groups of calls, as NCCL chooses or is told. What several
// ranks do on a node (chains, NVLS) needs more GPUs.
//
// Threading: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace ghostrank {

inline constexpr std::string_view kTracedNccl = "nccl-2.28";  // recorded: 2.28.3, 2.28.9
// Ranks of the largest communicator that was recorded; and with LL128, which NCCL uses there only
// if it is told to.
inline constexpr int kMostRanksTraced = 16, kMostRanksTracedByLl128 = 5;

// `node_of`: the emulated node of each rank of the communicator. `played`: "ring/LL128", "p2p".
bool nccl_is_traced(std::string_view library, std::span<const std::int32_t> node_of,
                    std::string_view played);

}  // namespace ghostrank
