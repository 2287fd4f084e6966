// What a slice of a job sends and receives, from its own result and from that of the whole job.
#pragma once

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "emulator/result/result.h"

namespace ghostrank::testing {

// What nodes of the slice send each other, and what crosses its border either way.
struct Traffic {
  std::map<std::pair<Nic, Nic>, std::pair<double, double>> inside;
  double to_outside = 0, from_outside = 0;

  bool operator==(const Traffic&) const = default;
};

inline Traffic traffic_of(const Result& whole, const std::vector<Node>& slice, int nics_per_node) {
  Traffic out;
  const auto inside = [&](Nic nic) {
    return std::ranges::count(slice, Node(nic.value() / nics_per_node)) > 0;
  };
  for (const PairTraffic& p : whole.pairs) {
    const bool from = inside(p.source_nic), to = inside(p.target_nic);
    if (from && to) out.inside[{p.source_nic, p.target_nic}] = {p.bytes, p.messages};
    out.to_outside += from && !to ? p.bytes : 0;
    out.from_outside += to && !from ? p.bytes : 0;
  }
  return out;
}

inline Traffic traffic_of(const Result& slice) {
  Traffic out{{}, slice.slice->bytes_to_outside, slice.slice->bytes_from_outside};
  for (const PairTraffic& p : slice.pairs)
    out.inside[{p.source_nic, p.target_nic}] = {p.bytes, p.messages};
  return out;
}

inline std::string text_of(const Traffic& traffic) {
  std::ostringstream text;
  for (const auto& [pair, sent] : traffic.inside)
    text << pair.first << ">" << pair.second << " " << sent.first << " " << sent.second << "\n";
  text << traffic.to_outside << " " << traffic.from_outside << "\n";
  return text.str();
}

}  // namespace ghostrank::testing
