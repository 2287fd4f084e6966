// Messages of connections with several queue pairs (fabric.qps_per_connection), over links and as
// packets. See shard.h and profiles/job/queue_pairs.h.
//
//   in turn    a message takes the next pair, with that pair's path
//   split      each part is a message of its own on the way. The NIC serves the pairs in turns, so
//              all parts leave from the first to the last byte of the message
//
// As with other connections that take several paths, the receiver delivers messages in the order in
// which they were sent (on_the_way/in_order.h). Parts count there as messages; the last one stands
// for the whole message, and the others end there. Permissions take the first pair and no turn.
#include <utility>

#include "emulator/shard/inline.h"
#include "emulator/shard/on_the_way/packet_connections.h"

namespace ghostrank {

// Calls send(part, its bytes, its pair, its number in order) for all parts of a message. `part` is
// the event of the message or, but for the last one, of one that ends with its arrival.
template <typename Send>
void Shard::for_each_part(const RoutedConnection& connection, const Event& whole,
                          const Send& send) {
  const QueuePairs& pairs = cluster_.topology().queue_pairs();
  const bool data = whole.message == MessageKind::data;
  const std::uint32_t parts = data ? pairs.parts(whole.bytes()) : 1;
  for (std::uint32_t i = 0; i < parts; ++i) {
    const std::uint32_t number = data ? in_turn_.number(connection) : 0;
    Event part = whole;
    if (i + 1 < parts) part.message = MessageKind::part;
    send(part, parts > 1 ? pairs.part(whole.bytes(), i) : whole.bytes(),
         !data         ? 0
         : pairs.split ? i
                       : (number - 1) % pairs.count,
         number);
  }
}

// As leave_by_links().
void Shard::leave_by_pairs(RankState& r, Flight& f, Route& route, const Leaving& m,
                           const Moment& start, Picoseconds duration, Payload* content) {
  const Topology& topology = cluster_.topology();
  const RoutedConnection connection{f.group, m.channel, r.party, route.target};
  const NicPair& nics = route.nics;
  Event whole;
  m.describe(f, whole);
  whole.message = m.kind;
  whole.rank = route.rank;
  whole.via = route.comes_in;
  if (route.shard == index_) whole.flight = flight_at_target(route, whole);
  if (copy_payload_) copy_as_much(m.bytes);
  const auto depart_by = [&](Event part, std::uint64_t bytes, std::uint32_t pair,
                             std::uint32_t number) {
    OnLinks way{.number = next_on_links(r.local),
                .target = route.target,
                .from = nics.source,
                .progress = OnLinks::progress_of(
                    pair_paths_.id(topology, connection, nics.source, nics.target, pair))};
    const bool last = part.message != MessageKind::part;
    const std::uint64_t all = last && bytes != m.bytes ? m.bytes : 0;
    part.set_size(bytes, m.number);
    if (number > 0 || content)
      way.rest = held_.put(Parcel{.message = {{.bytes = all & kMostBytes, .late_ns = number},
                                              last && content ? std::move(*content) : Payload()}});
    depart(part, way, start, duration, &f);
  };
  for_each_part(connection, whole, depart_by);
}

// As leave_by_packets(), of a message that `whole` stands for.
void Shard::send_by_pairs(const RoutedConnection& connection, const NicPair& nics,
                          const Event& whole, Picoseconds ready, Payload* content) {
  const Topology& topology = cluster_.topology();
  const bool links = topology.paths(nics.source, nics.target) > 0;
  const bool counted = whole.message != MessageKind::permission;  // as in the ledger
  const auto send = [&](const Event& part, std::uint64_t bytes, std::uint32_t pair,
                        std::uint32_t number) {
    const std::uint32_t path =
        links ? topology.choose(connection, nics.source, nics.target, 0, pair) : 0;
    Parcel p;
    p.event = part;
    p.nic = nics.source;
    p.message.header.late_ns = number;
    p.message.header.target = connection.to.value();
    if (content && part.message != MessageKind::part) p.message.payload = std::move(*content);
    by_packets_->network().send(by_packets_->of(connection, nics.source, nics.target, path, pair),
                                bytes, held_.put(std::move(p)), ready, counted);
  };
  for_each_part(connection, whole, send);
  want_packets();
}

// A message of a connection that takes several paths is in: delivers those that are next.
void Shard::come_in_turn(WorldParty target, std::uint32_t number, const Event& event) {
  in_turn_.arrived(connection_of(event, target), number, event, [this](const Event& next) {
    if (next.message != MessageKind::part) schedule(next);
  });
}

}  // namespace ghostrank
