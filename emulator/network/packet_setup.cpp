#include "emulator/network/packet_setup.h"

#include <algorithm>
#include <string>

#include "profiles/error.h"

namespace ghostrank {

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
  Picoseconds latency = 0;  // of the longest path; acknowledgements take it, too
  for (std::size_t a = 0; a < nics; ++a)
    for (std::size_t b = 0; b < a; ++b) {
      const Nic from(static_cast<std::int64_t>(a)), to(static_cast<std::int64_t>(b));
      latency = std::max(latency, topology.path_latency(from, to, topology.hops(from, to)));
    }
  if (spec.fabric.queues.retransmit <= 2 * latency)
    throw Error(spec.source_of("fabric.queues.retransmit_us") + ": fabric.queues.retransmit_us: " +
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
