#include "emulator/network/packet_setup.h"

#include <algorithm>
#include <string>

#include "profiles/error.h"

namespace ghostrank {
namespace {

// Throws Error(usage) if a sender would not wait long enough for the answer to a packet that finds
// the network idle. Such a packet takes its time at both NICs' ports and at every link, here that
// of the slowest one; the answer takes the latency alone.
void check_retransmit(const JobSpec& spec, const Topology& topology, std::size_t nics,
                      std::uint32_t payload) {
  double slowest = 0;
  for (std::uint32_t link = 0; link < topology.links(); ++link)
    slowest = std::max(slowest, static_cast<double>(topology.link(link).serialise(payload)));
  double latency = 0, longest = 0;  // of the round trips between two NICs
  for (std::size_t a = 0; a < nics; ++a)
    for (std::size_t b = 0; b < a; ++b) {
      const Nic from(static_cast<std::int64_t>(a)), to(static_cast<std::int64_t>(b));
      const int hops = topology.hops(from, to);
      const double both_ways = 2 * static_cast<double>(topology.path_latency(from, to, hops));
      const double at_ports = static_cast<double>(topology.nic(from).serialise(payload)) +
                              static_cast<double>(topology.nic(to).serialise(payload)) +
                              hops * slowest;
      if (both_ways + at_ports <= longest) continue;
      latency = both_ways;
      longest = both_ways + at_ports;
    }
  const auto retransmit = static_cast<double>(spec.fabric.queues.retransmit);
  if (retransmit > longest) return;
  const auto micros = [](double time) {
    return std::to_string(static_cast<std::uint64_t>(time / kPicosPerMicro)) + " us";
  };
  throw Error(spec.source_of("fabric.queues.retransmit_us") + ": fabric.queues.retransmit_us: " +
              micros(retransmit) + " are no longer than a round trip of " + micros(longest) + " (" +
              micros(longest - latency) +
              " of it a packet's time at the ports of its path), so every packet would be sent "
              "again; use several round trips");
}

}  // namespace

PacketNetwork::Setup packet_setup(const JobSpec& spec, const Topology& topology, std::size_t nics) {
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
  const Framing& framing = spec.fabric.framing;
  setup.payload = framing.packet_payload > 0 ? framing.packet_payload : spec.fabric.packets.mtu;
  check_retransmit(spec, topology, nics, setup.payload);
  setup.queues = spec.fabric.queues;
  setup.seed = spec.run.seed;
  for (const LinkSpeed& port : setup.ports) {
    if (!port.limited())
      throw Error(spec.source_of("fabric.network") + ": fabric.network: " +
                  "packet needs NICs and links that have a rate; give "
                  "cluster.nic.rate, or use loggp");
    const std::uint64_t least =
        setup.queues.pause
            ? PacketNetwork::least_buffer(port, setup.payload)
            : std::uint64_t{setup.payload} + framing.per_packet + framing.per_message;
    if (setup.queues.buffer < least)
      throw Error(spec.source_of("fabric.queues.buffer") +
                  ": fabric.queues.buffer: " + std::to_string(setup.queues.buffer) +
                  " bytes are too few; a port of this network needs " + std::to_string(least) +
                  (setup.queues.pause ? ", so that what still comes when it asks for a pause is "
                                        "not lost"
                                      : " for one packet"));
  }
  return setup;
}

}  // namespace ghostrank
