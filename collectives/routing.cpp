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

// Destination modulo paths: messages to neighbouring NICs never share an uplink.
std::uint32_t by_target(const RoutedFlow& flow) {
  return static_cast<std::uint32_t>(flow.target_nic.index() % flow.paths);
}

// A flowlet draws its path anew, whatever the load of the paths, as in LetFlow (Vanini et al., NSDI
// 2017).
std::uint32_t by_hash_of_flowlet(const RoutedFlow& flow) {
  return static_cast<std::uint32_t>(checking::mix(flow.hash ^ checking::mix(flow.number)) %
                                    flow.paths);
}

constexpr Routing kRows[]{{"ecmp", by_hash},
                          {"static", by_target},
                          {"spray", in_turn, Routing::Per::message},
                          {"flowlet", by_hash_of_flowlet, Routing::Per::flowlet}};

}  // namespace

std::span<const Routing> routings() { return kRows; }

}  // namespace ghostrank
