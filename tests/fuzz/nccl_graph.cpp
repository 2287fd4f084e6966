// NCCL's graph dump: XML to a node whose rings visit every GPU once.
#include "profiles/load/files/nccl_graph.h"

#include <string>

#include "profiles/error.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank;
  try {
    const auto graphs = parse_nccl_graphs(fuzz::text_of(data, size), "graph.xml");
    const NcclNode& node = graphs->node;
    for (int channel = 0; channel < node.channels(2); ++channel) {
      const NcclList ring = nccl_ring_list(node, channel, 1, node.gpus);
      for (int i = 0; i < node.gpus; ++i) {
        fuzz::require(ring.position_of(ring.local_at(i)) == i);
        fuzz::require(nccl_ring_nic(node, channel, i, node.gpus) < node.nics);
      }
    }
    ++fuzz::accepted;
  } catch (const Error& refused) {
    fuzz::require(*refused.what() != '\0');
  }
  return 0;
}
