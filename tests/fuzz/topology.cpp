// A file of links, as CSV or, where it begins with a brace, as JSON.
#include "profiles/load/files/topology.h"

#include <string>

#include "profiles/error.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank;
  try {
    const std::string text(fuzz::text_of(data, size));
    const std::string path = text.starts_with("{") ? "links.json" : "links.csv";
    const ClusterSpec cluster = cluster_named_in(text, path);
    if (std::int64_t{cluster.nodes} * cluster.nics_per_node > 1 << 16) return 0;
    const SwitchGraph graph = parse_topology(text, path, cluster);
    for (const Nic nic : graph.leaf_of.keys()) fuzz::require(graph.leaf_of[nic] < graph.leaves);
    for (const SwitchGraph::Cable& cable : graph.cables)
      fuzz::require(cable.a < graph.switches.size() && cable.b < graph.switches.size());
    ++fuzz::accepted;
  } catch (const Error& refused) {
    fuzz::require(*refused.what() != '\0');
  }
  return 0;
}
