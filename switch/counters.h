// What every switch counts, whichever target it is.
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
  std::uint64_t results = 0;  // of a leaf: results that came from above
  std::uint64_t gaps = 0;     // over RoCEv2: dropped, because a packet before them is missing
};

struct PortCounters {
  std::uint64_t received = 0, received_bytes = 0, sent = 0, sent_bytes = 0;
  std::uint64_t malformed = 0;  // cut short, or to SwitchML's UDP port and not of its form
  std::uint64_t strangers = 0;  // well-formed, but of no job here
  std::uint64_t lost = 0;       // dropped on purpose, by the plan's probabilities
  std::uint64_t unknown = 0;    // ordinary frames for an address that no port has
};

struct SwitchCounters {
  std::vector<PortCounters> ports;
  std::vector<std::pair<std::string, JobCounters>> jobs;  // by name
};

}  // namespace ghostrank::switchml
