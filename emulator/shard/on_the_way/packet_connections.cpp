#include "emulator/shard/on_the_way/packet_connections.h"

#include <string>

#include "emulator/network/packet_setup.h"

namespace ghostrank {

PacketConnections::PacketConnections(const JobSpec& spec, const Topology& topology,
                                     std::size_t nics, const LinkRates* links)
    : topology_(topology),
      nics_(nics),
      nics_per_node_(spec.cluster.nics_per_node),
      network_(packet_setup(spec, topology, nics, links)) {}

std::string PacketConnections::name_of(PacketNetwork::Connection connection) const {
  const auto name = [this](Nic nic) {
    return "n" + std::to_string(nic.value() / nics_per_node_) + ".nic" +
           std::to_string(nic.value() % nics_per_node_);
  };
  return name(ends_[connection].first) + " to " + name(ends_[connection].second);
}

PacketNetwork::Connection PacketConnections::of(const RoutedConnection& connection, Nic from,
                                                Nic to, std::uint32_t path,
                                                std::uint32_t queue_pair) {
  const Key key{connection, path, queue_pair};
  const auto [at, fresh] = known_.try_emplace(key, 0);
  if (!fresh) return at->second;
  const std::uint32_t links = topology_.links();
  std::vector<PacketNetwork::Port> ports{links + static_cast<std::uint32_t>(from.value())};
  if (topology_.paths(from, to) > 0) {
    const Path between = topology_.path(from, to, path);
    ports.insert(ports.end(), between.link.begin(), between.link.begin() + between.links);
  }
  ports.push_back(links + static_cast<std::uint32_t>(nics_) +
                  static_cast<std::uint32_t>(to.value()));
  ends_.emplace_back(from, to);
  return at->second = network_.connect(ports, Hash{}(key));
}

std::vector<LinkCount> PacketConnections::counts() const {
  std::vector<LinkCount> out;
  const std::size_t ports = topology_.links() + 2 * nics_;
  for (std::size_t port = 0; port < ports; ++port) {
    const PacketNetwork::Count& c = network_.count(static_cast<PacketNetwork::Port>(port));
    out.push_back(
        {c.bytes, c.messages, c.busy, c.longest_wait, c.queue.packets, c.waited, c.queue});
  }
  return out;
}

void PacketConnections::clear(Picoseconds at, bool with_events) {
  known_.clear();
  ends_.clear();
  network_.clear(at, with_events);
}

}  // namespace ghostrank
