// A plan as the entries of the P4 program's tables, whatever the target writes them in.
//
//   sources     (port, source address, slot) -> worker: its mark, its slots, who gets a result
//                                            -> upper: the switch above; its packets are results
//   groups      lists of receivers; one for all workers of a job, one for each of them (repeated
//               results), or the uplink in place of both
//   resume      (address of a receiver, slot) -> the receiver after it; for targets that serve one
//               receiver per pass
//
// Slots of the jobs are laid side by side in the registers. A range of slots becomes ternary
// matches of powers of two.
//
// Threading: plain values.
#pragma once

#include <cstdint>
#include <vector>

#include "switch/plan.h"

namespace ghostrank::switchml {

struct Ternary {
  std::uint16_t value = 0, mask = 0;
};
// Slots [first, first + count) as few matches of aligned powers of two.
std::vector<Ternary> ternary_range(int first, int count);

struct Receiver {
  int port = 0;
  Mac mac{};
  std::uint32_t ip = 0;
  std::uint16_t udp = 0;  // plus the low four bits of the switch's port
};

struct Tables {
  struct Group {
    std::uint32_t number = 0;  // from 1
    std::vector<Receiver> receivers;
  };
  struct Source {
    int port = 0;
    std::uint32_t ip = 0;
    Ternary slot;
    bool upper = false;
    int worker = 0, workers = 0;  // of a worker
    std::uint16_t offset = 0;     // register slot = packet slot + offset
    std::uint32_t all = 0, again = 0;
  };
  struct Resume {
    std::uint32_t ip = 0;
    Ternary slot;
    std::uint32_t group = 0, index = 0;
  };
  std::vector<Group> groups;
  std::vector<Source> sources;
  std::vector<Resume> resume;
};

// Throws std::invalid_argument where a job's elements are not `elements` (a P4 program has one
// size), or where the jobs together have more than `slots`.
Tables tables_of(const SwitchPlan& plan, int elements, int slots);

}  // namespace ghostrank::switchml
