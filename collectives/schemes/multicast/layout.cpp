#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>

#include "collectives/schemes/multicast/agents.h"
#include "collectives/schemes/multicast/elmo_header.h"
#include "collectives/schemes/multicast/orca_label.h"

namespace ghostrank::multicast {
namespace {

constexpr std::uint64_t kShortCall = 1024, kMostInRun = 32;  // packets

std::uint8_t* octets(std::vector<std::byte>& bytes) {
  return reinterpret_cast<std::uint8_t*>(bytes.data());
}

}  // namespace

Layout::Layout(Multicast chosen, int ranks, const MulticastOptions& given, const Communicator& comm)
    : MemberLayout(ranks, comm),
      scheme(chosen),
      options(given),
      racks(rails.rails()),
      ranks_(ranks) {
  const Communicator::Switches& switches = comm.switches;
  const bool modelled = !switches.leaf_of.empty();
  if (modelled && !switches.regular && scheme != Multicast::unicast)
    throw std::invalid_argument(
        "it names leaves, spines and pods by number, which tori, dragonflies and files of links do "
        "not have; use another cluster.topology.kind, or unicast");
  if (modelled) {  // else racks and pods are those of the prototype
    clos = {switches.pods, switches.leaves, switches.spines, switches.cores, switches.ports};
  } else {
    const int leaves = (rails.nodes() + kPorts - 1) / kPorts;
    clos = {(leaves + kPorts - 1) / kPorts, kPorts, kPorts, kPorts, kPorts};
  }
  for (int rail = 0; rail < rails.rails(); ++rail) {
    std::map<int, Below> by_leaf;
    for (int node = 0; node < rails.nodes(); ++node) {
      const GroupRank worker = rails.worker(rail, node);
      const int leaf = modelled ? switches.leaf_of[worker] : node / kPorts;
      Below& rack = by_leaf[leaf];
      rack.rail = rail;
      rack.leaf = leaf;
      rack.workers.push_back(worker);
      rack.ports.push_back(modelled ? switches.port_of[worker] : node % kPorts);
    }
    for (auto& [leaf, rack] : by_leaf) racks[rail].push_back(std::move(rack));
  }
  if (scheme != Multicast::orca || rails.nodes() == 1) return;
  for (std::vector<Below>& of_rail : racks)
    for (Below& rack : of_rail) {
      rack.first_agent = static_cast<GroupParty>(ranks + helpers.size());
      for (int i = 0; i < rack.agents(); ++i) {
        helpers.push_back({.kind = PartyKind::server, .beside = rack.workers[i]});
        rack_of_helper_.push_back(&rack);
      }
    }
}

std::uint64_t Layout::packets_of_run(const Call& call) const {
  const auto parts = static_cast<std::uint64_t>(rails.rails());
  const std::uint64_t all = packets((call.collective.count + parts - 1) / parts);
  const std::uint64_t header = scheme == Multicast::orca   ? tree_label_bytes(clos)
                               : scheme == Multicast::elmo ? kMostElmoHeader
                                                           : 1;
  return std::clamp<std::uint64_t>(all / kShortCall, 1, std::min(kMostInRun, kMostWords / header));
}

std::vector<GroupRank> Layout::members(const Below& rack, GroupRank root) const {
  std::vector<GroupRank> members = rack.workers;
  std::erase(members, root);
  return members;
}

int Layout::leaf_of(GroupRank root) const {
  for (const Below& rack : racks[rails.rail_of(root)])
    if (std::ranges::count(rack.workers, root) > 0) return rack.leaf;
  throw std::logic_error("the root is no worker");
}

Way Layout::way(int rail, GroupRank root) const {
  Way way;
  const int source = leaf_of(root);
  std::map<int, const Below*> rack_at;
  std::vector<Rack> copies;
  std::vector<int> leaves;
  for (const Below& rack : racks[rail]) {
    if (rack.workers == std::vector{root}) continue;
    rack_at[rack.leaf] = &rack;
    leaves.push_back(rack.leaf);
    Rack& to = copies.emplace_back(Rack{rack.leaf, {}});
    for (std::size_t i = 0; i < rack.workers.size(); ++i)
      if (rack.workers[i] != root) to.ports.push_back(rack.ports[i]);
  }
  if (scheme == Multicast::orca) {
    const OrcaTree tree = orca_tree(clos, source, leaves, source);
    way.header.resize(tree_label_bytes(clos));
    encode_tree_label(clos, tree.label, octets(way.header));
    for (const int leaf : reached(clos, source, tree.label, tree.suppressed))
      way.to.push_back(agent_of(*rack_at.at(leaf), root));
    return way;
  }
  for (const auto& [leaf, rack] : rack_at)
    for (const GroupRank member : members(*rack, root)) way.to.push_back(member);
  if (scheme == Multicast::elmo) way.header.resize(elmo_header(clos, source, copies).bytes);
  return way;
}

std::vector<std::byte> Layout::rack_header(const Below& rack, GroupParty agent,
                                           GroupRank root) const {
  std::vector<int> ports;
  const std::size_t own = static_cast<std::size_t>(agent - rack.first_agent);
  for (std::size_t i = 0; i < rack.workers.size(); ++i)
    if (rack.workers[i] != root && i != own) ports.push_back(rack.ports[i]);
  std::vector<std::byte> header(rack_label_bytes(clos));
  encode_rack_label(clos, ports, octets(header));
  return header;
}

std::vector<std::byte> headers(const std::vector<std::byte>& header, std::uint64_t copies) {
  std::vector<std::byte> all;
  all.reserve(header.size() * copies);
  for (std::uint64_t i = 0; i < copies; ++i) all.insert(all.end(), header.begin(), header.end());
  return all;
}

}  // namespace ghostrank::multicast
