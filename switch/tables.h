// A plan as the entries of the P4 program's tables, whatever the target writes them in.
//
//   sources     (port, source address, slot) -> worker: its mark, its slots, who gets a result
//                                            -> upper: the switch above; its packets are results
//   groups      lists of receivers; one for all workers of a job, one for each of them (repeated
//               results), or the uplink in place of both
//   resume      (address of a receiver, slot) -> the receiver after it; for targets that serve one
//               receiver per pass
//
// Slots of the jobs are laid side by side in the registers. There is an entry for every slot: exact
// matches are what every target has and does fast.
//
// Threading: plain values.
#pragma once

#include <cstdint>
#include <vector>

#include "switch/plan.h"

namespace ghostrank::switchml {

inline constexpr std::size_t kMostSources = 65536;  // size of the table in p4/source.p4

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
    int slot = 0;  // in packets
    bool upper = false;
    int worker = 0, workers = 0;  // of a worker
    std::uint16_t offset = 0;     // register slot = packet slot + offset
    std::uint32_t all = 0, again = 0;
  };
  struct Resume {
    std::uint32_t ip = 0;
    int slot = 0;
    std::uint32_t group = 0, index = 0;
  };
  std::vector<Group> groups;
  std::vector<Source> sources;
  std::vector<Resume> resume;
};

// Throws std::invalid_argument where a job's elements are not `elements` (a P4 program has one
// size), where the jobs together have more than `slots`, or more than kMostSources entries.
Tables tables_of(const SwitchPlan& plan, int elements, int slots);

}  // namespace ghostrank::switchml
