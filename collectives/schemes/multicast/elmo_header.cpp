#include "collectives/schemes/multicast/elmo_header.h"

#include <algorithm>
#include <functional>
#include <map>

namespace ghostrank::multicast {
namespace {

int bits_to_number(int things) {
  int bits = 1;
  while (bits < 31 && 1 << bits < things) ++bits;
  return bits;
}

// Adds rules for switches that copy alike: `alike` counts the switches of each kind of copy.
// Those without room get s-rules.
void add_rules(const std::map<std::vector<int>, int>& alike, int bitmap, int id, std::uint64_t most,
               std::uint64_t& bits, ElmoHeader& header) {
  std::vector<int> counts;
  for (const auto& [copies, switches] : alike) counts.push_back(switches);
  std::ranges::sort(counts, std::greater<>());
  for (const int switches : counts) {
    const auto rule = static_cast<std::uint64_t>(1 + bitmap + switches * (id + 1) + 2);
    if (bits + rule > most) {
      header.s_rules += switches;
      continue;
    }
    bits += rule;
    ++header.p_rules;
  }
}

}  // namespace

ElmoHeader elmo_header(const Clos& clos, int source, const std::vector<Rack>& racks) {
  const int ports = std::max(kPorts, clos.ports), spines = std::max(kPorts, clos.spines),
            leaves = std::max(kPorts, clos.leaves), cores = std::max(kPorts, clos.cores),
            pods = std::max(kPods, clos.pods);
  std::map<std::vector<int>, int> spine_rules, leaf_rules;
  std::map<int, std::vector<int>> links_of_pod;  // other pods
  const int own = clos.pod_of(source);
  bool above_leaf = false;
  for (const Rack& rack : racks) {
    if (rack.leaf == source) continue;
    above_leaf = true;
    ++leaf_rules[rack.ports];
    const int pod = clos.pod_of(rack.leaf);
    if (pod != own) links_of_pod[pod].push_back(clos.link_of(rack.leaf));
  }
  for (const auto& [pod, links] : links_of_pod) ++spine_rules[links];

  ElmoHeader header{0, 1, 0};
  auto bits = static_cast<std::uint64_t>(1 + ports + spines + 2);
  if (above_leaf) {
    bits += static_cast<std::uint64_t>(1 + leaves + cores + 2);
    ++header.p_rules;
  }
  if (!links_of_pod.empty()) {
    bits += static_cast<std::uint64_t>(1 + pods);
    ++header.p_rules;
  }
  const std::uint64_t most = 8 * kMostElmoHeader;
  add_rules(spine_rules, leaves, bits_to_number(clos.pods), most, bits, header);
  add_rules(leaf_rules, ports, bits_to_number(clos.pods * clos.leaves), most, bits, header);
  header.bytes = (bits + 7) / 8;
  return header;
}

}  // namespace ghostrank::multicast
