// The modelled network, packet by packet, and the connections that messages take over it
// (fabric.network: packet). A connection is a queue pair: of a group, a channel, a source and a
// target, as the routing sees it; where the routing chooses per message, one for each of its paths.
// With fabric.qps_per_connection it has several.
//
// Its ports are those of packet_setup(). Credits take a path's latency and no bandwidth.
//
// Units: emulated picoseconds, bytes. Threading: one owner (a shard).
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "emulator/common/random.h"
#include "emulator/network/links.h"
#include "emulator/network/packet_network.h"
#include "emulator/network/topology.h"

namespace ghostrank {

class LinkRates;

class PacketConnections {
 public:
  // `links`: whose rates events change; null: none. Throws as packet_setup() does.
  PacketConnections(const JobSpec& spec, const Topology& topology, std::size_t nics,
                    const LinkRates* links);

  // The connection's queue pair over path `path` of those between the NICs; made when first asked
  // for.
  PacketNetwork::Connection of(const RoutedConnection& connection, Nic from, Nic to,
                               std::uint32_t path, std::uint32_t queue_pair = 0);
  PacketNetwork& network() { return network_; }
  std::string name_of(PacketNetwork::Connection connection) const;  // "n0.nic1 to n2.nic0"
  std::vector<LinkCount> counts() const;                            // by port
  // Between segments; the next begins at time `at` of nic_rates and, with events, of LinkRates.
  void clear(Picoseconds at, bool with_events);

 private:
  struct Key {
    RoutedConnection connection;
    std::uint32_t path, queue_pair;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& k) const {
      return RandomBits({RoutedConnection::Hash{}(k.connection), k.path, k.queue_pair}).next();
    }
  };

  const Topology& topology_;
  std::size_t nics_;
  int nics_per_node_;
  PacketNetwork network_;
  std::unordered_map<Key, PacketNetwork::Connection, Hash> known_;
  std::vector<std::pair<Nic, Nic>> ends_;  // by connection
};

}  // namespace ghostrank
