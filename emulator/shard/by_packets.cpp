// How messages go where the network is played packet by packet (fabric.network: packet). See
// shard.h and network/packet_network.h.
//
//   leave ──> PacketNetwork ──packets_due──> arrival at the receiver
//
// The network has events of its own, which are not in the shard's queue. One event of the shard
// stands for them: when it fires, the network plays up to the shard's next event or to the first
// message that comes in, whichever is earlier. That event fires after all others of its time,
// because its target has the highest number.
#include <algorithm>
#include <string>

#include "emulator/network/link_rates.h"
#include "emulator/shard/inline.h"
#include "emulator/shard/on_the_way/packet_connections.h"
#include "emulator/shard/ranks/slow_ranks.h"

namespace ghostrank {
namespace {

constexpr std::uint32_t kPacketsTarget = kMostTargets - 1;

// Why the connection gave up, and what helps. `slowed`: a congestion control slows senders down.
std::string why_given_up(const PacketNetwork& network, PacketNetwork::Connection connection,
                         bool slowed, bool links_change) {
  const std::string tries = std::to_string(PacketNetwork::kTries);
  if (network.in_circle(connection))
    return " got no acknowledgement in the time of " + tries +
           " tries: ports pause each other in a circle, and none ever goes on; take routes without "
           "a circle, a larger fabric.queues.buffer or a small fabric.queues.window" +
           (slowed ? "" : ", or slow senders down (fabric.queues.congestion_control: dcqcn)");
  if (network.paused(connection))
    return " got no acknowledgement in the time of " + tries +
           " tries, while ports on its path were paused for what is slow ahead of them; take a "
           "larger fabric.queues.retransmit_us or a smaller fabric.queues.buffer";
  return " has sent the same packet " + tries +
         " times, and none was acknowledged; fabric.queues.retransmit_us must exceed a round trip "
         "and the time that a full buffer takes" +
         (links_change
              ? ", also on a link that an event slows down, and so many tries must outlast "
                "the time for which an event takes a link down"
              : "");
}

}  // namespace

Shard::~Shard() = default;

void Shard::leave_by_packets(RankState& r, Flight& f, Route& route, const Leaving& m,
                             Payload* content) {
  const Topology& topology = cluster_.topology();
  Parcel p;
  p.nic = route.nics.source;
  m.describe(f, p.event);
  p.event.set_kind(Event::Kind::arrival, m.kind);
  p.event.flight = nullptr;
  p.event.rank = route.rank;
  p.event.via = route.comes_in;
  if (m.kind == MessageKind::credit) {
    const Picoseconds latency = topology.path_latency(
        route.nics.source, route.nics.target, topology.hops(route.nics.source, route.nics.target));
    p.event.t = {m.ready.at + nic_.serialise(m.bytes) + latency, m.ready.slip};
    return schedule(p.event);
  }
  if (topology.queue_pairs().several())
    return send_by_pairs({f.group, m.channel, r.party, route.target}, route.nics, p.event,
                         m.ready.at, content);
  if (content) p.message.payload = std::move(*content);
  auto connection = static_cast<PacketNetwork::Connection>(route.flow);
  if (!topology.one_path() && topology.paths(route.nics.source, route.nics.target) > 0) {
    const RoutedConnection routed{f.group, m.channel, r.party, route.target};
    const std::uint32_t number = in_turn_.number(routed);
    const auto [from, to] = route.nics;
    const auto by = [&](std::uint64_t chosen_for) {
      return by_packets_->of(routed, from, to, topology.choose(routed, from, to, chosen_for));
    };
    // Packets of the flowlet may still wait at the NIC.
    if (const std::uint32_t flowlet = flowlets_.present(routed); flowlet > 0)
      flowlets_.lasts(routed,
                      std::min(m.ready.at, by_packets_->network().sending_until(by(flowlet))));
    const Picoseconds until = m.ready.at + time_at_nic(from, m.ready.at, m.bytes);
    p.message.header.late_ns = number;
    p.message.header.target = route.target.value();
    connection = by(number_for_routing(routed, number, m.ready.at, until));
  }
  const bool counted = m.kind != MessageKind::permission;  // as in the ledger
  by_packets_->network().send(connection, m.bytes, held_.put(std::move(p)), m.ready.at, counted);
  want_packets();
}

void Shard::packets_due(Picoseconds now) {
  if (now != packets_due_at_) return;  // they went on earlier
  packets_due_at_ = -1;
  PacketNetwork& network = by_packets_->network();
  const Picoseconds until = timers_.empty() ? PacketNetwork::kNever : timers_.next();
  for (const PacketNetwork::Arrival& arrival : network.play(std::max(until, now + 1))) {
    Parcel p = held_.take(arrival.message);
    Event event = p.event;
    event.t = {arrival.at, 0};
    const std::uint32_t number = p.message.header.late_ns;
    const WorldParty target(p.message.header.target);
    if (p.message.payload) event.held = held_.put(std::move(p));
    if (number == 0)
      schedule(event);
    else
      come_in_turn(target, number, event);
  }
  if (const auto connection = network.gave_up())
    return fail("fabric.network: packet: a connection from " + by_packets_->name_of(*connection) +
                why_given_up(network, *connection,
                             static_cast<bool>(spec_.fabric.queues.control->make), links_change_));
  want_packets();
}

// Lets packets go on when the next thing happens to one.
void Shard::want_packets() {
  const Picoseconds next = by_packets_->network().next();
  if (next == PacketNetwork::kNever) return;
  if (packets_due_at_ >= 0 && packets_due_at_ <= next) return;
  packets_due_at_ = next;
  Event& e = schedule(Event::Kind::packets, {next, 0}, kPacketsTarget);
  e.flight = nullptr;
  e.held = kNil;
}

}  // namespace ghostrank
