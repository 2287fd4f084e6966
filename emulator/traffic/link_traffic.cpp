#include "emulator/traffic/link_traffic.h"

namespace ghostrank {

void LinkTraffic::add_calls(const RoutedConnection& connection, const NicPair& nics,
                            const CallTraffic::Edge& edge, std::uint64_t times) {
  const LedgerCell whole{edge.bytes * times, edge.messages * times};
  const Topology& topology = cluster_.topology();
  const QueuePairs& pairs = topology.queue_pairs();
  if (!pairs.several()) {
    along(connection, nics, whole,
          [this](std::uint32_t link, const LedgerCell& sum) { add(link, sum); });
    return;
  }
  if (cluster_.location(connection.from).node == cluster_.location(connection.to).node ||
      topology.paths(nics.source, nics.target) == 0)
    return;
  const bool known = edge.any_turn(pairs);
  for (std::uint32_t pair = 0; pair < pairs.count; ++pair) {
    const LedgerCell& own = edge.by_pair[pair];
    const LedgerCell part = known ? LedgerCell{own.bytes * times, own.messages * times}
                                  : share_of(whole, pair, pairs.count);
    knows_pairs_ &= known && (pairs.split || own.bytes == edge.by_pair[0].bytes);
    const Path path = topology.path(nics.source, nics.target,
                                    topology.choose(connection, nics.source, nics.target, 0, pair));
    for (int i = 0; i < path.links; ++i) add(path.link[i], part);
  }
}

}  // namespace ghostrank
