// How exactly the played traffic equals that of the imitated library, and how we know it.
//
// Threading: pure functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "collectives/library.h"
#include "collectives/schedule.h"

namespace ghostrank {

struct Exactness {
  enum class Level : std::uint8_t {
    none,      // imitates no library
    bytes,     // L1: bytes per (source, destination) pair
    messages,  // L2: the ordered messages of every connection
  };
  enum class Basis : std::uint8_t {
    none,
    derived,  // from the source of the library
    traced,   // compared with a recording of the library
  };
  Level level = Level::none;
  Basis basis = Basis::none;
  auto operator<=>(const Exactness&) const = default;
};

constexpr std::string_view name_of(Exactness::Level level) {
  return level == Exactness::Level::messages ? "L2"
         : level == Exactness::Level::bytes  ? "L1"
                                             : "none";
}
constexpr std::string_view name_of(Exactness::Basis basis) {
  return basis == Exactness::Basis::traced    ? "traced"
         : basis == Exactness::Basis::derived ? "derived"
                                              : "imitates no library";
}

// Returns how exact a row of the registry is. Files and plugins imitate nothing that we know of;
// the built-in schemes with agents are made after the source of the systems that they are named
// for, those of schedules after papers.
inline Exactness exactness_of(const Algorithm& row) {
  using Level = Exactness::Level;
  using Basis = Exactness::Basis;
  switch (library_named(row.library)) {
    case Library::openmpi:
      return {Level::messages, Basis::traced};
    case Library::nccl:
    case Library::gloo:
      return {Level::messages, Basis::derived};
    case Library::generic:
    case Library::other:
      break;
  }
  return row.library == kSchemes && row.ends ? Exactness{Level::messages, Basis::derived}
                                             : Exactness{};
}

// The same for a send or receive of a job. NCCL's messages are exact where we know whether the
// communicator is that of the group, or of the two ranks alone (PyTorch's isend outside a batch).
// A transfer of another library is exact in bytes only, because it is one message here.
inline Exactness exactness_of_transfer(const Algorithm& row, bool communicator_known) {
  Exactness exactness = exactness_of(row);
  if (communicator_known && library_named(row.library) == Library::nccl) return exactness;
  exactness.level = std::min(exactness.level, Exactness::Level::bytes);
  return exactness;
}

}  // namespace ghostrank
