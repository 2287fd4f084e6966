// The counters of a switch, the same for every target.
//
// Threading: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ghostrank::switchml {

struct JobCounters {
  std::uint64_t received = 0, collected = 0, duplicates = 0, broadcasts = 0, retransmissions = 0;
  std::uint64_t sent = 0;     // copies of results and, on a leaf, sums sent up
  std::uint64_t results = 0;  // of a leaf: results received from the switch above
  std::uint64_t gaps = 0;     // over RoCEv2: dropped because an earlier packet is missing
};

struct PortCounters {
  std::uint64_t received = 0, received_bytes = 0, sent = 0, sent_bytes = 0;
  std::uint64_t malformed = 0;  // truncated, or to SwitchML's UDP port but not of its form
  std::uint64_t strangers = 0;  // well-formed, but of none of this switch's jobs
  std::uint64_t lost = 0;       // dropped on purpose, by the plan's probabilities
  std::uint64_t unknown = 0;    // ordinary frames to an address that no port has
};

struct SwitchCounters {
  std::vector<PortCounters> ports;
  std::vector<std::pair<std::string, JobCounters>> jobs;  // by name
};

}  // namespace ghostrank::switchml
