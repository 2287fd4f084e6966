#include "emulator/network/packet_setup.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "profiles/error.h"

namespace ghostrank {
namespace {

// Returns the longest time that a packet takes at the NIC, whose rate may change.
Picoseconds longest_at_nic(const LinkSpeed& speed, const RateCurve* curve, std::uint32_t payload) {
  if (!curve) return speed.serialise(payload);
  const auto wire =
      static_cast<double>(speed.framing.none() ? payload : speed.framing.on_wire(payload));
  Picoseconds longest = 0;
  for (const RateCurve::Change& change : curve->changes())  // such a packet begins or ends at one
    longest = std::max(
        {longest, curve->duration(change.from, wire), curve->duration_until(change.from, wire)});
  return longest;
}

// The same of a link, while anything passes.
Picoseconds longest_at_link(LinkSpeed speed, const RateCurve* curve, std::uint32_t payload) {
  Picoseconds longest = speed.serialise(payload);
  if (!curve) return longest;
  for (const RateCurve::Change& change : curve->changes()) {
    speed.ps_per_byte = change.ps_per_byte;
    if (std::isfinite(change.ps_per_byte)) longest = std::max(longest, speed.serialise(payload));
  }
  return longest;
}

// Throws Error(usage) if a sender would not wait long enough for the answer to a packet that finds
// the network idle. Such a packet takes its time at both NICs' ports and at every link of its path,
// here the slowest of the shortest ones; the answer takes the latency alone.
void check_retransmit(const JobSpec& spec, const Topology& topology, std::size_t nics,
                      const LinkRates* links, std::uint32_t payload) {
  std::vector<Picoseconds> at_link, at_nic;
  for (std::uint32_t link = 0; link < topology.links(); ++link)
    at_link.push_back(
        longest_at_link(topology.link(link), links ? links->of(link) : nullptr, payload));
  std::vector<Nic> by_leaf;
  const NicRates* const rates = spec.cluster.nic_rates.get();
  for (std::size_t n = 0; n < nics; ++n) {
    const Nic nic = by_leaf.emplace_back(static_cast<std::int64_t>(n));
    at_nic.push_back(longest_at_nic(topology.nic(nic), rates ? rates->of(nic) : nullptr, payload));
  }
  const auto leaf = [&](Nic nic) { return at_link.empty() ? 0 : topology.leaf_of(nic); };
  std::stable_sort(by_leaf.begin(), by_leaf.end(), [&](Nic a, Nic b) { return leaf(a) < leaf(b); });
  Picoseconds latency = 0, longest = 0;  // of the round trips between two NICs
  std::vector<Picoseconds> at_links;     // by switch: on the slowest path to the leaf of `to`
  for (std::size_t i = 1; i < nics; ++i) {
    const Nic to = by_leaf[i];
    if (!at_link.empty() && (at_links.empty() || leaf(to) != leaf(by_leaf[i - 1])))
      at_links = topology.routes().most_toward(leaf(to), at_link);
    for (std::size_t j = 0; j < i; ++j) {
      const Nic from = by_leaf[j];
      const Picoseconds both_ways = 2 * topology.path_latency(from, to, topology.hops(from, to));
      const Picoseconds at_ports =
          at_nic[from.index()] + at_nic[to.index()] + (at_links.empty() ? 0 : at_links[leaf(from)]);
      if (both_ways + at_ports <= longest) continue;
      latency = both_ways;
      longest = both_ways + at_ports;
    }
  }
  const Picoseconds retransmit = spec.fabric.queues.retransmit;
  if (retransmit > longest) return;
  const auto micros = [](Picoseconds time) {
    return std::to_string(time / kPicosPerMicro) + " us";
  };
  throw Error(spec.source_of("fabric.queues.retransmit_us") + ": fabric.queues.retransmit_us: " +
              micros(retransmit) + " are no longer than a round trip of " + micros(longest) + " (" +
              micros(longest - latency) + " of it a packet's time at the ports of its path" +
              (rates ? ", with the lowest rates of cluster.nic.rates" : "") +
              (links ? ", with the lowest rates of events" : "") +
              "), so packets would be sent again that are not lost; use several round trips");
}

}  // namespace

PacketNetwork::Setup packet_setup(const JobSpec& spec, const Topology& topology, std::size_t nics,
                                  const LinkRates* links) {
  PacketNetwork::Setup setup;
  for (std::uint32_t link = 0; link < topology.links(); ++link) {
    setup.ports.push_back(topology.link(link));
    if (links) setup.curves.push_back(links->of(link));
  }
  setup.events = topology.links();
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
  check_retransmit(spec, topology, nics, links, setup.payload);
  setup.queues = spec.fabric.queues;
  setup.seed = spec.run.seed;
  for (const LinkSpeed& port : setup.ports) {
    if (!port.limited())
      throw Error(
          spec.source_of("fabric.network") + ": fabric.network: " +
          "packet needs NICs and links that have a rate; give "
          "cluster.nic.rate, and what cluster.topology says of its links' rates, or use loggp");
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
