#include "emulator/shard/on_the_way/packet_connections.h"

#include <algorithm>
#include <string>

#include "profiles/error.h"

namespace ghostrank {
namespace {

PacketNetwork::Setup setup_of(const JobSpec& spec, const Topology& topology, std::size_t nics) {
  PacketNetwork::Setup setup;
  for (std::uint32_t link = 0; link < topology.links(); ++link)
    setup.ports.push_back(topology.link(link));
  for (int side = 0; side < 2; ++side)
    for (std::size_t n = 0; n < nics; ++n) {
      LinkSpeed speed = topology.nic(Nic(static_cast<std::int64_t>(n)));
      const Picoseconds half = speed.latency / 2;
      speed.latency = side == 0 ? half : speed.latency - half;
      if (spec.cluster.nic_rates) {
        setup.curves.resize(setup.ports.size());  // links
        setup.curves.push_back(spec.cluster.nic_rates->of(Nic(static_cast<std::int64_t>(n))));
      }
      setup.ports.push_back(speed);
    }
  Picoseconds latency = 0;  // of the longest path; acknowledgements take it, too
  for (std::size_t a = 0; a < nics; ++a)
    for (std::size_t b = 0; b < a; ++b) {
      const Nic from(static_cast<std::int64_t>(a)), to(static_cast<std::int64_t>(b));
      latency = std::max(latency, topology.path_latency(from, to, topology.hops(from, to)));
    }
  if (spec.fabric.queues.retransmit <= 2 * latency)
    throw Error("fabric.queues.retransmit_us: " +
                std::to_string(spec.fabric.queues.retransmit / kPicosPerMicro) +
                " us are no longer than a round trip of " +
                std::to_string(2 * latency / kPicosPerMicro) +
                " us, so every packet would be sent again; use several round trips");
  const Framing& framing = spec.fabric.framing;
  setup.payload = framing.packet_payload > 0 ? framing.packet_payload : spec.fabric.packets.mtu;
  setup.queues = spec.fabric.queues;
  setup.seed = spec.run.seed;
  for (const LinkSpeed& port : setup.ports) {
    if (!port.limited())
      throw Error("fabric.network: packet needs NICs and links that have a rate");
    const std::uint64_t least =
        setup.queues.pause
            ? PacketNetwork::least_buffer(port, setup.payload)
            : std::uint64_t{setup.payload} + framing.per_packet + framing.per_message;
    if (setup.queues.buffer < least)
      throw Error("fabric.queues.buffer: " + std::to_string(setup.queues.buffer) +
                  " bytes are too few; a port of this network needs " + std::to_string(least) +
                  (setup.queues.pause ? ", so that what still comes when it asks for a pause is "
                                        "not lost"
                                      : " for one packet"));
  }
  return setup;
}

}  // namespace

PacketConnections::PacketConnections(const JobSpec& spec, const Topology& topology,
                                     std::size_t nics)
    : topology_(topology),
      nics_(nics),
      nics_per_node_(spec.cluster.nics_per_node),
      network_(setup_of(spec, topology, nics)) {}

std::string PacketConnections::name_of(PacketNetwork::Connection connection) const {
  const auto name = [this](Nic nic) {
    return "n" + std::to_string(nic.value() / nics_per_node_) + ".nic" +
           std::to_string(nic.value() % nics_per_node_);
  };
  return name(ends_[connection].first) + " to " + name(ends_[connection].second);
}

PacketNetwork::Connection PacketConnections::of(const RoutedConnection& connection, Nic from,
                                                Nic to, std::uint32_t path) {
  const auto [at, fresh] = known_.try_emplace({connection, path}, 0);
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
  return at->second = network_.connect(ports);
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

void PacketConnections::clear(Picoseconds at) {
  known_.clear();
  ends_.clear();
  network_.clear(at);
}

}  // namespace ghostrank
