#include "collectives/routing.h"

namespace ghostrank {
namespace {

std::uint32_t by_hash(const RoutedFlow& flow) {
  return static_cast<std::uint32_t>(flow.hash % flow.paths);
}

// Round robin over the paths, starting at the path that the hash gives.
std::uint32_t in_turn(const RoutedFlow& flow) {
  return static_cast<std::uint32_t>((flow.hash % flow.paths + flow.message) % flow.paths);
}

// Destination modulo paths: messages to neighbouring NICs never share an uplink.
std::uint32_t by_target(const RoutedFlow& flow) {
  return static_cast<std::uint32_t>(flow.target_nic.index() % flow.paths);
}

constexpr Routing kRows[]{
    {"ecmp", by_hash}, {"static", by_target}, {"spray", in_turn, /*per_message=*/true}};

}  // namespace

std::span<const Routing> routings() { return kRows; }

}  // namespace ghostrank
