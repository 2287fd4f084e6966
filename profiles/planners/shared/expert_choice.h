// Which experts tokens choose, and so how many ranks and nodes a token reaches.
//
// Experts stand in `groups` of neighbours; a token chooses `group_top_k` of the groups, then its
// experts in these alone (DeepSeek's device- and node-limited routing; one group: no limit). Here
// groups, then experts, are drawn without replacement in proportion to their loads: for equal loads
// every choice is as likely as every other, and how many neighbours a token reaches has a closed
// form. A trained router picks groups by their best experts' scores, and so leaves fewer of them
// unused. Threading: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "profiles/model/model.h"

namespace ghostrank {

// The probability that a token of equal loads visits any of so many neighbouring experts, which lie
// in one group or are whole groups:
//   sum over j chosen of the c groups   C(c,j) C(G-c,M-j) / C(G,M)  (1 - C(Me-je,k) / C(Me,k))
// and for s experts of one group   M/G (1 - C(Me-s,k) / C(Me,k)),   with e experts to a group.
double reach(const Experts& experts, std::uint64_t neighbours);

// Of a token on average, from so many draws: visits by expert, and whether it visits each rank (so
// many neighbouring experts) and each node.
struct Choices {
  std::vector<double> experts, ranks, nodes;
};
Choices drawn_choices(const Experts& experts, const std::vector<double>& loads, std::size_t ranks,
                      std::size_t nodes, std::size_t tokens, std::uint64_t seed);

}  // namespace ghostrank
