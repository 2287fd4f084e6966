// Which experts tokens choose, and thus how many ranks and nodes a token reaches.
//
// Experts form `groups` of neighbours. A token chooses `group_top_k` of the groups, then its
// experts only in these (DeepSeek's device- and node-limited routing; one group: no limit). This
// model draws groups, then experts, without replacement in proportion to their loads: with equal
// loads all choices are equally likely, and the number of neighbours that a token reaches has a
// closed form. A trained router picks groups by their best experts' scores, and so leaves fewer
// chosen groups unused. Threading: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "profiles/model/model.h"

namespace ghostrank {

// With equal loads, the probability that a token visits any of a run of `neighbours` experts: the
// mean of all runs, experts 0 to neighbours - 1 and so on, which differ where a run has a part of a
// group. `neighbours` must divide the number of experts. G groups have e experts each, M is
// group_top_k and k is top_k in:
//   c whole groups           sum over j  C(c,j) C(G-c,M-j) / C(G,M) (1 - C(Me-je,k) / C(Me,k))
//   s experts of one group   M/G (1 - C(Me-s,k) / C(Me,k))
//   both                     the sum over whether that group is chosen, and j
double reach(const Experts& experts, std::uint64_t neighbours);

// Averages per token over `tokens` draws: visits to each expert, and the share of tokens that visit
// each rank and each node (both hold equal runs of neighbouring experts).
struct Choices {
  std::vector<double> experts, ranks, nodes;
};
Choices drawn_choices(const Experts& experts, const std::vector<double>& loads, std::size_t ranks,
                      std::size_t nodes, std::size_t tokens, std::uint64_t seed);

}  // namespace ghostrank
