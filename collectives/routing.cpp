#include "collectives/routing.h"

#include "collectives/common/dice.h"

namespace ghostrank {
namespace {

std::uint32_t by_hash(const RoutedFlow& flow) {
  return static_cast<std::uint32_t>(flow.hash % flow.paths);
}

// Round robin over the paths, starting at the path that the hash gives.
std::uint32_t in_turn(const RoutedFlow& flow) {
  return static_cast<std::uint32_t>((flow.hash % flow.paths + flow.number) % flow.paths);
}

// D-mod-K (Zahavi, "Fat-tree routing and node ordering providing contention free traffic for MPI
// global collectives", JPDC 2012): neighbouring NICs of a leaf have different first hops, then
// neighbouring leaves different further ones. Where first hops have unequal numbers of paths, only
// neighbouring NICs have different paths.
std::uint32_t by_target(const RoutedFlow& flow) {
  const std::uint32_t target = flow.target_place, further = flow.paths / flow.first_hops;
  if (flow.paths % flow.first_hops != 0) return target % flow.paths;
  return target % flow.first_hops * further + target / flow.first_hops % further;
}

// A flowlet draws its path anew, whatever the load of the paths, as in LetFlow (Vanini et al., NSDI
// 2017).
std::uint32_t by_hash_of_flowlet(const RoutedFlow& flow) {
  return static_cast<std::uint32_t>(checking::mix(flow.hash ^ checking::mix(flow.number)) %
                                    flow.paths);
}

constexpr Routing kRoutings[]{{"ecmp", by_hash},
                              {"static", by_target},
                              {"spray", in_turn, Routing::Per::message},
                              {"flowlet", by_hash_of_flowlet, Routing::Per::flowlet}};

}  // namespace

std::span<const Routing> routings() { return kRoutings; }

}  // namespace ghostrank
