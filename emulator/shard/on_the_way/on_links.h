// A message on its way over links between switches: what its event does not say. Half a cache line,
// because hundreds of thousands are under way at a time. Plain values.
#pragma once

#include <cstdint>

#include "collectives/common/number.h"
#include "emulator/common/pool.h"
#include "emulator/network/switch_routes.h"
#include "profiles/units.h"

namespace ghostrank {

struct alignas(32) OnLinks {
  // When its last byte arrives at its next link; behind the last link, its first at the NIC.
  Picoseconds tail = 0;
  std::uint64_t number = 0;    // among all that its sender has sent over links
  WorldParty target;           // that receives it
  Nic from;                    // by which it left
  std::uint32_t progress = 0;  // see progress_of()
  // In Shard::held_, what few messages have: a payload, Header::late_ns (its number on a connection
  // that may reorder), Header::bytes (of a message that came in parts) and Header::nonce (of a note
  // to many: the number that all copies share).
  std::uint32_t rest = kNil;

  // Its path, as Topology::path_by_id() knows it, and how many links it has passed.
  static std::uint32_t progress_of(std::uint32_t path, std::uint32_t passed = 0) {
    return path << kPassedBits | passed;
  }
  std::uint32_t path() const { return progress >> kPassedBits; }
  std::uint32_t passed() const { return progress % (1u << kPassedBits); }

 private:
  static constexpr int kPassedBits = 4;
  static_assert(Path::kMost < 1 << kPassedBits &&
                SwitchRoutes::kMostIds <= 1u << (32 - kPassedBits));
};
static_assert(sizeof(OnLinks) == 32);

}  // namespace ghostrank
