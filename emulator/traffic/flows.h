// Which endpoints a job opens on a real network, which flows join them, and which flow a message
// takes. Every process computes the same before the start, from the job's plan.
//
//   flows:       process      an endpoint per shard                 a flow per pair of shards
//                nic          an endpoint per NIC                   a flow per pair of NICs
//                connection   a few endpoints per NIC              a flow per (communicator,
//                                                                   channel, source, target)
//   colocated: wire           an endpoint per node at least
//
// A flow is one connection of the provider: over TCP one 5-tuple each way. In each call all
// messages of one channel from a source to a target take the same flow. A credit returns on the
// flow of its data, in the other direction. A permission takes the flow of data in its own
// direction if there is one, else it goes as a credit.
//
// A provider joins two endpoints by one connection only. So n flows between two NICs need n pairs
// of endpoints: L = ceil(sqrt(n)) endpoints on either side. Flow i joins endpoint i / L of one NIC
// with endpoint i mod L of the other.
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
  Host host;  // with the shard, its owner
  std::int32_t shard = 0;
  Node node{-1};  // -1: all nodes of the shard
  Nic nic{-1};    // -1: all NICs of the node
  std::int32_t index = 0;
};

struct Flow {
  std::array<std::int32_t, 2> end{};    // indexes of endpoints; the first one opens the flow
  std::array<std::int32_t, 2> index{};  // of this flow among the flows of the shard at that end
};

// One end of a flow, as the shard there sees it.
struct FlowEnd {
  std::int32_t flow = 0, end = 0;
};

class Flows {
 public:
  Flows(const JobSpec& spec, const Workload& workload, const Cluster& cluster);

  // Whether agents send notes over the flows.
  bool with_notes() const { return !cluster_.schemes().empty(); }

  // Whether a message from `from` to `to` goes through the fabric.
  bool carries(const Location& from, const Location& to) const {
    return from.node != to.node && (from.host != to.host || wire_) && from.host != kNoHost &&
           to.host != kNoHost;
  }
  // Whether schemes send packets beside the flows.
  bool with_packets() const { return with_packets_; }
  // The flow of a message that the fabric carries, as its index among the flows of the sender's
  // shard; -1 if no flow was planned for it.
  int index_of(WorldParty from, WorldParty to, const Header& header, const NicPair& nics) const;

  // The first flow from one shard to another, as its index among those of the first; -1: none.
  int between(Host host, int shard, Host other, int other_shard) const;

  int shards() const { return shards_; }  // per process
  const std::vector<FlowEndpoint>& endpoints() const { return endpoints_; }
  const std::vector<Flow>& flows() const { return flows_; }
  // The flow ends at one shard, in the order of their index.
  const std::vector<FlowEnd>& of(Host host, int shard) const { return ends_[host][shard]; }
  const FlowEndpoint& endpoint(const FlowEnd& e) const {
    return endpoints_[flows_[e.flow].end[e.end]];
  }
  // Number of flows for each pair of hosts.
  std::vector<FlowCount> per_host_pair() const;

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
  Location at(WorldParty party, Nic nic) const;
  int owner(const Location& location) const;
  int endpoint_for(const Location& location, int owner, int index);
  void add_all_pairs(int parties);
  void add_nics(const std::vector<Connection>& used);
  void add_connections(std::vector<Connection> used);
  void join_shards();
  void add(Key key, int opens, int other);
  void number_ends();

  const Cluster& cluster_;
  const FlowKind kind_;
  const bool wire_;
  const int shards_;
  bool with_packets_ = false;
  std::vector<FlowEndpoint> endpoints_;
  std::vector<Flow> flows_;
  VectorBy<Host, std::vector<std::vector<FlowEnd>>> ends_;  // by host, then shard
  std::unordered_map<Key, std::int32_t, Hash> known_;
  std::unordered_map<Key, std::int32_t, Hash> endpoint_of_;  // by (owner, index)
};

}  // namespace ghostrank
