// What processes tell each other during a segment, by Control::publish.
//
// Threading: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "collectives/schedule.h"

namespace ghostrank {

// Kinds of published messages; the first byte says which. A report comes in pieces; an empty one
// ends it, and a barrier follows.
enum class Published : std::uint8_t { iteration = 1, pulse, report };

// All processes run the same build and job, so a malformed message means a mismatched binary or
// tampering.
inline std::string malformed_from(Host host, const std::string& what) {
  return "host " + to_string(host) + " sent a malformed " + what +
         "; check that every host runs the same ghostrank";
}

}  // namespace ghostrank
