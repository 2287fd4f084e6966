// Units: emulated Picoseconds, bytes. Threading: a plain value.
#pragma once

#include <cstdint>

#include "collectives/common/number.h"
#include "profiles/units.h"

namespace ghostrank {

// What a helper did in a segment.
struct HelperCount {
  WorldParty party;
  std::uint64_t rx_bytes = 0, tx_bytes = 0;  // of notes
  std::uint64_t memory_bytes = 0;
  Picoseconds busy = 0;  // of its processor and cores together
};

}  // namespace ghostrank
