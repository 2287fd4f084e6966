// Which rank inverts which factor. Each rule takes the dimensions of all factors in the order A, G
// of the first layer, A, G of the second, ..., and returns a rank for each, or kEveryRank where all
// ranks invert it themselves and nothing is sent.
//
//   round robin   one after the other in turn; with no more ranks than layers, a layer's two
//                 together (MPD-KFAC, DP-KFAC)
//   LBP           the largest first, each to the rank with the least sum of dimensions; those below
//                 a dimension to every rank (SPD-KFAC's load-balancing placement)
//   blocks        runs of neighbours with the least possible largest sum of dimensions; ranks left
//                 over take the last factor of a run each (PAD-KFAC's block partition)
//
// The rules follow the authors' published code (kfac_pytorch). Equal dimensions keep their order in
// LBP, where theirs leaves it open. Threading: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ghostrank {

inline constexpr int kEveryRank = -1;

// `layers_together`: both factors of a layer to one rank whatever the number of ranks.
std::vector<int> place_round_robin(std::size_t factors, int ranks, bool layers_together);
std::vector<int> place_balanced(std::span<const std::uint64_t> dimensions, int ranks,
                                std::uint64_t local_below);
std::vector<int> place_blocks(std::span<const std::uint64_t> dimensions, int ranks);

}  // namespace ghostrank
