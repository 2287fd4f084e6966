// Which endpoints a job opens on a real network, which flows join them, and which flow a message
// takes. Computed alike by every process before the start, from the job's plan.
//
//   flows:       process      an endpoint per shard                 a flow per pair of shards
//                nic          an endpoint per NIC                   a flow per pair of NICs
//                connection   a few endpoints ("lanes") per NIC     a flow per (communicator,
//                                                                   channel, source, target)
//   colocated: wire           an endpoint per node at least
//
// A flow is one connection of the provider: over TCP one 5-tuple each way. A message of (source,
// target) always takes the same flow; a credit returns on the flow of its data, the other way. A
// permission shares the flow of data that goes its way, if there is any; else it is like a credit.
//
// A provider joins two endpoints by one connection and no more. So n flows between two NICs need
// n pairs of endpoints, and ceil(sqrt(n)) lanes on either side have that many: flow i joins lane
// i / L of one with lane i mod L of the other.
//
// Threading: immutable after construction; shared by all shards.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "emulator/fabric/wire.h"
#include "emulator/traffic/cluster.h"
#include "emulator/traffic/traffic.h"

namespace ghostrank {

struct FlowEndpoint {
  std::int32_t host = 0, shard = 0;  // who owns it
  std::int32_t node = -1;            // -1: all nodes of the shard
  std::int32_t nic = -1;             // -1: all NICs of the node
  std::int32_t lane = 0;
};

struct Flow {
  std::array<std::int32_t, 2> end{};    // endpoints; the first one opens the flow
  std::array<std::int32_t, 2> index{};  // of this flow among those of the shard at that end
};

// One end of a flow, as the shard there sees it.
struct FlowEnd {
  std::int32_t flow = 0, end = 0;
};

class Flows {
 public:
  Flows(const JobSpec& spec, const Workload& workload, const Cluster& cluster);

  // Whether agents talk over them.
  bool with_notes() const { return !cluster_.schemes().empty(); }

  // Whether what `from` sends to `to` goes through the fabric.
  bool carries(const Place& from, const Place& to) const {
    return from.node != to.node && (from.host != to.host || wire_);
  }
  // Whether schemes send packets beside them.
  bool with_packets() const { return with_packets_; }
  // Of a message that the fabric carries: the index of its flow among those of its sender's shard;
  // -1 when none was planned for it.
  int index_of(Rank from, Rank to, const Header& header, const NicPair& nics) const;

  int shards() const { return shards_; }  // of a process
  const std::vector<FlowEndpoint>& endpoints() const { return endpoints_; }
  const std::vector<Flow>& flows() const { return flows_; }
  // Of one shard, in the order of their index.
  const std::vector<FlowEnd>& of(int host, int shard) const {
    return ends_[static_cast<std::size_t>(host * shards_ + shard)];
  }
  const FlowEndpoint& endpoint(const FlowEnd& e) const {
    return endpoints_[static_cast<std::size_t>(
        flows_[static_cast<std::size_t>(e.flow)].end[static_cast<std::size_t>(e.end)])];
  }
  // Flows between hosts (or within one, on the wire), as {lower host, higher host, how many}.
  std::vector<std::array<int, 3>> per_host_pair() const;

 private:
  struct Key {
    std::uint64_t pair = 0, connection = 0;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      std::uint64_t h = (key.pair ^ key.connection * 0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd;
      return h ^ h >> 32;
    }
  };

  int index_at(const Key& key, std::size_t end) const;
  Place at(Rank rank, int nic) const;
  int owner(const Place& place) const;
  int endpoint_for(const Place& place, int owner, int lane);
  void add_all_pairs(int parties);
  void add_nics(const std::vector<Connection>& used);
  void add_connections(std::vector<Connection> used);
  void add(Key key, int opens, int other);
  void number_ends();

  const Cluster& cluster_;
  const FlowKind kind_;
  const bool wire_;
  const int shards_;
  bool with_packets_ = false;
  std::vector<FlowEndpoint> endpoints_;
  std::vector<Flow> flows_;
  std::vector<std::vector<FlowEnd>> ends_;
  std::unordered_map<Key, std::int32_t, Hash> known_;
  std::unordered_map<Key, std::int32_t, Hash> endpoint_of_;  // (owner, lane)
};

}  // namespace ghostrank
