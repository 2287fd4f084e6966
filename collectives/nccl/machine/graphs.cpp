#include "collectives/nccl/machine/graphs.h"

#include <algorithm>

namespace ghostrank {
namespace {

// Cuts the graph to `channels` channels and fills in positions. Returns the number of NICs: the
// highest NIC number plus 1.
int finish(NcclGraph& graph, int channels) {
  int nics = 0;
  graph.channels.resize(channels);
  graph.links.channels = channels;
  for (NcclGraphChannel& channel : graph.channels) {
    channel.position.resize(channel.order.size());
    for (std::size_t i = 0; i < channel.order.size(); ++i)
      channel.position[channel.order[i]] = static_cast<int>(i);
    nics = std::max({nics, channel.first_nic + 1, channel.last_nic + 1});
  }
  return nics;
}

}  // namespace

std::shared_ptr<const NcclGraphs> nccl_graphs(NcclGraphs graphs) {
  auto made = std::make_shared<NcclGraphs>(std::move(graphs));
  const auto channels =
      static_cast<int>(std::min(made->ring.channels.size(), made->tree.channels.size()));
  const int nics = std::max(finish(made->ring, channels), finish(made->tree, channels));
  NcclNode& node = made->node;
  node.gpus = static_cast<int>(made->ring.channels.front().order.size());
  node.nics = std::max(node.nics, nics);
  node.search_channels = channels;
  node.graphs = made.get();
  return made;
}

}  // namespace ghostrank
