#include "emulator/traffic/flows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

namespace ghostrank {
namespace {

std::uint64_t joined(int a, int b) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(a)) << 32 |
         static_cast<std::uint32_t>(b);
}

std::uint64_t named(std::uint32_t group, std::uint16_t channel) {
  return std::uint64_t{group} << 16 | channel;
}

}  // namespace

Flows::Flows(const JobSpec& spec, const Workload& workload, const Cluster& cluster)
    : cluster_(cluster),
      kind_(spec.fabric.flows),
      wire_(spec.fabric.colocated == Colocated::wire),
      shards_(cluster.shards()),
      ends_(cluster.hosts(), std::vector<std::vector<FlowEnd>>(cluster.shards())) {
  if (!is_network(spec.fabric.kind) || (cluster.hosts() == 1 && !wire_)) return;
  if (kind_ == FlowKind::process) {
    add_all_pairs(cluster.parties());
  } else {
    const std::vector<Connection> used = plan_connections(spec, workload);
    if (kind_ == FlowKind::nic)
      add_nics(used);
    else
      add_connections(used);
    if (cluster.is_slice()) join_shards();
  }
  number_ends();
  with_packets_ = !cluster.schemes().empty() && sends_packets(spec, workload);
}

// Where a party is, with the NIC that the message takes.
Location Flows::at(WorldParty party, Nic nic) const {
  Location location = cluster_.location(party);
  location.nic = nic;
  return location;
}

// The shard, node or NIC that has an endpoint of its own.
int Flows::owner(const Location& location) const {
  if (kind_ != FlowKind::process) return location.nic.value();
  return wire_ ? location.node.value() : location.host.value() * shards_ + location.shard;
}

int Flows::endpoint_for(const Location& location, int owner, int index) {
  const auto [it, fresh] = endpoint_of_.try_emplace({joined(owner, index), 0},
                                                    static_cast<std::int32_t>(endpoints_.size()));
  if (fresh) {
    const bool nic = kind_ != FlowKind::process;
    endpoints_.push_back({location.host, location.shard, nic || wire_ ? location.node : Node(-1),
                          nic ? location.nic : Nic(-1), index});
  }
  return it->second;
}

// `opens` is the endpoint that opens the flow, `other` the far one.
void Flows::add(Key key, int opens, int other) {
  known_.emplace(key, static_cast<std::int32_t>(flows_.size()));
  flows_.push_back({{opens, other}, {}});
}

// Joins every shard (or node) with every other, used or not: they are few, and any collective can
// then be played.
void Flows::add_all_pairs(int parties) {
  std::map<int, Location> owners;
  for (const WorldParty party : each<WorldParty>(parties)) {
    if (cluster_.outside(party) || cluster_.location(party).host == kNoHost) continue;
    owners.emplace(owner(cluster_.location(party)), cluster_.location(party));
  }
  for (const auto& [a, from] : owners) {
    for (const auto& [b, to] : owners) {
      if (a >= b || (from.host == to.host && !wire_)) continue;
      const int opens = endpoint_for(from, a, 0);
      add({joined(a, b), 0}, opens, endpoint_for(to, b, 0));
    }
  }
}

void Flows::add_nics(const std::vector<Connection>& used) {
  for (const Connection& c : used) {
    Location from = at(c.from, c.nics.source), to = at(c.to, c.nics.target);
    if (!carries(from, to)) continue;
    if (from.nic > to.nic) std::swap(from, to);
    const Key key{joined(from.nic.value(), to.nic.value()), 0};
    if (known_.contains(key)) continue;
    const int opens = endpoint_for(from, from.nic.value(), 0);
    add(key, opens, endpoint_for(to, to.nic.value(), 0));
  }
}

void Flows::add_connections(std::vector<Connection> used) {
  // Two algorithms may give one connection different NICs; the first in order opens it.
  const auto same = [](const Connection& a, const Connection& b) {
    return std::tie(a.group, a.channel, a.from, a.to) == std::tie(b.group, b.channel, b.from, b.to);
  };
  used.erase(std::unique(used.begin(), used.end(), same), used.end());
  const auto nics = [](const Connection& c) { return std::minmax({c.nics.source, c.nics.target}); };
  std::map<std::pair<Nic, Nic>, int> count, next;  // flows per pair of NICs
  for (const Connection& c : used) {
    if (carries(cluster_.location(c.from), cluster_.location(c.to))) ++count[nics(c)];
  }
  for (const Connection& c : used) {
    const Location from = at(c.from, c.nics.source), to = at(c.to, c.nics.target);
    if (!carries(from, to)) continue;
    const auto pair = nics(c);
    const int endpoints = static_cast<int>(std::ceil(std::sqrt(count[pair])));
    const int i = next[pair]++;
    const bool rising = from.nic == pair.first;
    const int opens = endpoint_for(from, from.nic.value(), rising ? i / endpoints : i % endpoints);
    add({joined(c.from.value(), c.to.value()), named(c.group, c.channel)}, opens,
        endpoint_for(to, to.nic.value(), rising ? i % endpoints : i / endpoints));
  }
}

// Joins the shards that no flow of the plan joins: of a slice they tell each other what has left
// it.
void Flows::join_shards() {
  struct Shard {
    Host host;
    int shard = 0;
    auto operator<=>(const Shard&) const = default;
  };
  std::set<std::pair<Shard, Shard>> joined_shards;
  for (const Flow& f : flows_) {
    const FlowEndpoint &a = endpoints_[f.end[0]], &b = endpoints_[f.end[1]];
    joined_shards.insert(std::minmax(Shard{a.host, a.shard}, Shard{b.host, b.shard}));
  }
  std::vector<std::pair<Shard, Location>> all;
  for (const Host host : each<Host>(cluster_.hosts()))
    for (int shard = 0; shard < shards_; ++shard)
      all.push_back({{host, shard}, cluster_.location(cluster_.ranks_of(host, shard).front())});
  for (const auto& [a, from] : all)
    for (const auto& [b, to] : all) {
      if (a.host >= b.host || joined_shards.contains({a, b})) continue;
      const int opens = endpoint_for(from, from.nic.value(), 0);
      const auto [low, high] = std::minmax(from.nic, to.nic);
      const std::uint64_t connection = kind_ == FlowKind::nic ? 0 : ~std::uint64_t{0};
      add({joined(low.value(), high.value()), connection}, opens,
          endpoint_for(to, to.nic.value(), 0));
    }
}

int Flows::between(Host host, int shard, Host other, int other_shard) const {
  const std::vector<FlowEnd>& mine = of(host, shard);
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const FlowEndpoint& far = endpoint({mine[i].flow, 1 - mine[i].end});
    if (far.host == other && far.shard == other_shard) return static_cast<int>(i);
  }
  return -1;
}

void Flows::number_ends() {
  for (std::size_t f = 0; f < flows_.size(); ++f) {
    for (std::size_t end = 0; end < 2; ++end) {
      const FlowEndpoint& e = endpoints_[flows_[f].end[end]];
      auto& mine = ends_[e.host][e.shard];
      flows_[f].index[end] = static_cast<std::int32_t>(mine.size());
      mine.push_back({static_cast<std::int32_t>(f), static_cast<std::int32_t>(end)});
    }
  }
}

// -1 if there is none.
int Flows::index_at(const Key& key, std::size_t end) const {
  const auto found = known_.find(key);
  if (found == known_.end()) return -1;
  return flows_[found->second].index[end];
}

int Flows::index_of(WorldParty from, WorldParty to, const Header& h, const NicPair& nics) const {
  if (kind_ == FlowKind::connection) {
    const bool note = h.kind == MessageKind::note;  // its channel field says what the note is about
    const std::uint64_t connection = named(h.group, note ? 0 : h.channel);
    const int with_data = h.kind == MessageKind::credit
                              ? -1
                              : index_at({joined(from.value(), to.value()), connection}, 0);
    if (with_data >= 0 || note || h.kind == MessageKind::data) return with_data;
    return index_at({joined(to.value(), from.value()), connection},
                    1);  // back on the flow of its data
  }
  const int a = owner(at(from, nics.source)), b = owner(at(to, nics.target));
  return index_at({joined(std::min(a, b), std::max(a, b)), 0}, a < b ? 0 : 1);
}

std::vector<FlowCount> Flows::per_host_pair() const {
  std::map<std::pair<Host, Host>, int> count;
  for (const Flow& f : flows_)
    ++count[std::minmax({endpoints_[f.end[0]].host, endpoints_[f.end[1]].host})];
  std::vector<FlowCount> pairs;
  for (const auto& [hosts, flows] : count) pairs.push_back({hosts.first, hosts.second, flows});
  return pairs;
}

}  // namespace ghostrank
