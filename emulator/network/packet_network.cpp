#include "emulator/network/packet_network.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "emulator/common/random.h"
#include "switch/assert.h"

namespace ghostrank {
namespace {

// The marks' default: 5 KB and 200 KB at 40 Gb/s (DCQCN, table 14), in proportion to the rate.
constexpr double kMarkFrom = 1e6, kMarkTo = 40e6;  // picoseconds of the port's time

std::uint64_t largest_packet(const LinkSpeed& port, std::uint32_t payload) {
  return std::uint64_t{payload} + port.framing.per_packet + port.framing.per_message;
}

// Bytes that still come when a port is told to pause: those on the wire when the pause leaves,
// those that leave before it comes, and a packet at each end that has begun.
std::uint64_t headroom(const LinkSpeed& port, std::uint32_t payload) {
  const double on_wire =
      port.limited() ? 2 * static_cast<double>(port.latency) / port.ps_per_byte : 0;
  return static_cast<std::uint64_t>(on_wire + 1) + 2 * largest_packet(port, payload);
}

}  // namespace

std::uint64_t PacketNetwork::least_buffer(const LinkSpeed& port, std::uint32_t payload) {
  return headroom(port, payload) + 4 * largest_packet(port, payload);
}

PacketNetwork::PacketNetwork(Setup setup) : setup_(std::move(setup)) {
  const QueueSpec& q = setup_.queues;
  window_ = q.window == 0 ? std::numeric_limits<std::uint64_t>::max()
                          : std::max<std::uint64_t>(1, q.window / setup_.payload);
  clear();
}

void PacketNetwork::clear(Picoseconds at, bool with_events) {
  at_ = at;
  now_ = 0;
  planned_ = packets_ = again_ = 0;
  events_.clear();
  arrivals_.clear();
  connections_.clear();
  store_.clear();
  free_.clear();
  gave_up_.reset();
  ports_.clear();
  const QueueSpec& q = setup_.queues;
  for (std::size_t i = 0; i < setup_.ports.size(); ++i) {
    const LinkSpeed& speed = setup_.ports[i];
    PortState& port = ports_.emplace_back();
    port.speed = speed;
    port.curve = i < setup_.curves.size() && (with_events || i >= setup_.events) ? setup_.curves[i]
                                                                                 : nullptr;
    if (q.scheduling == Scheduling::fifo) port.rings.resize(1);
    const std::uint64_t room = headroom(speed, setup_.payload);
    port.stop_at = q.buffer > room ? q.buffer - room : 0;
    const std::uint64_t two = 2 * largest_packet(speed, setup_.payload);
    port.go_at = port.stop_at > two ? port.stop_at - two : 0;
    const double per_ps = speed.limited() ? 1 / speed.ps_per_byte : 1;
    port.mark_from = q.mark_to > 0 ? q.mark_from : static_cast<std::uint64_t>(kMarkFrom * per_ps);
    port.mark_to = q.mark_to > 0 ? q.mark_to : static_cast<std::uint64_t>(kMarkTo * per_ps);
  }
}

PacketNetwork::Connection PacketNetwork::connect(std::span<const Port> path,
                                                 std::optional<std::uint64_t> name) {
  const auto id = static_cast<Connection>(connections_.size());
  ConnectionState& c = connections_.emplace_back();
  c.name = name.value_or(id);
  c.path.assign(path.begin(), path.end());
  GHOSTRANK_ASSERT(path.size() >= 2);
  for (std::size_t hop = 0; hop < path.size(); ++hop) {
    PortState& port = ports_[path[hop]];
    c.back += port.speed.latency;
    port.host |= hop == 0;
    const bool own = setup_.queues.scheduling == Scheduling::fair && hop > 0;
    c.ring.push_back(own ? static_cast<std::uint32_t>(port.rings.size()) : 0);
    if (own) port.rings.emplace_back();
  }
  const LinkSpeed& nic = ports_[path[0]].speed;
  c.nic_rate = nic.limited() ? 1 / nic.ps_per_byte : 1;
  if (setup_.queues.control->make) c.control = setup_.queues.control->make(c.nic_rate);
  draw_patience(id);
  return id;
}

void PacketNetwork::draw_patience(Connection id) {
  ConnectionState& c = connections_[id];
  RandomBits bits({setup_.seed, c.name, static_cast<std::uint64_t>(now_)});
  const auto least = static_cast<double>(setup_.queues.retransmit);
  c.patience = static_cast<Picoseconds>(least * (1 + bits.unit()));
}

void PacketNetwork::send(Connection connection, std::uint64_t bytes, std::uint32_t message,
                         Picoseconds at, bool counted) {
  GHOSTRANK_ASSERT(at >= now_);
  plan({.at = at,
        .what = What::begin,
        .who = connection,
        .number = bytes,
        .message = message,
        .counted = counted});
}

void PacketNetwork::plan(Event event) {
  event.order = planned_++;
  events_.push_back(event);
  std::push_heap(events_.begin(), events_.end(), std::greater<>());
}

std::span<const PacketNetwork::Arrival> PacketNetwork::play(Picoseconds until) {
  arrivals_.clear();
  while (!events_.empty() && events_.front().at < until && !gave_up_) {
    if (!arrivals_.empty() && events_.front().at > now_) break;
    std::pop_heap(events_.begin(), events_.end(), std::greater<>());
    const Event e = events_.back();
    events_.pop_back();
    now_ = e.at;
    happen(e);
  }
  return arrivals_;
}

void PacketNetwork::happen(const Event& e) {
  switch (e.what) {
    case What::begin:
      return begin(e);
    case What::sent:
      return sent(e.who);
    case What::arrive:
      return arrive(e.who);
    case What::stop: {
      PortState& port = ports_[e.who];
      port.paused = true;
      port.paused_since = now_;
      ++port.count.queue.pauses;
      return;
    }
    case What::go: {
      PortState& port = ports_[e.who];
      port.paused = false;
      port.count.queue.paused += now_ - port.paused_since;
      return start(e.who);
    }
    case What::answer:
      return answered(e);
    case What::wake:
      connections_[e.who].waking = false;
      return offer(e.who);
    case What::timeout:
      return timed_out(e.who);
  }
}

// ---- The sender ----

void PacketNetwork::begin(const Event& e) {
  ConnectionState& c = connections_[e.who];
  const std::uint64_t bytes = e.number;
  const std::uint64_t packets =
      std::max<std::uint64_t>(1, (bytes + setup_.payload - 1) / setup_.payload);
  c.messages.push_back({c.end, packets, bytes, e.message, e.counted});
  c.end += packets;
  offer(e.who);
}

// Gives the connection a turn at its NIC, if it has something to send and no turn yet.
void PacketNetwork::offer(Connection id) {
  ConnectionState& c = connections_[id];
  if (c.in_turn || c.waking || c.next == c.end || c.next - c.acknowledged >= window_) return;
  if (c.may_send > now_) {
    c.waking = true;
    plan({c.may_send, What::wake, id});
    return;
  }
  c.in_turn = true;
  ports_[c.path[0]].turns.push_back(id);
  start(c.path[0]);
}

// Makes the connection's next packet, and sets its timer and when the next one may leave.
std::uint32_t PacketNetwork::make_packet(Connection id) {
  ConnectionState& c = connections_[id];
  const auto after =
      std::upper_bound(c.messages.begin(), c.messages.end(), c.next,
                       [](std::uint64_t number, const Message& m) { return number < m.first; });
  const Message& m = *std::prev(after);
  const std::uint64_t at = c.next - m.first;
  const LinkSpeed& nic = ports_[c.path[0]].speed;
  const auto bytes = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(setup_.payload, m.bytes - at * setup_.payload));
  const std::uint32_t wire =
      bytes + nic.framing.per_packet + (at == 0 ? nic.framing.per_message : 0);
  const std::uint32_t packet =
      put({id, c.next, bytes, wire, 0, false, at + 1 == m.packets, m.counted, now_, now_});
  const bool again = c.next < c.furthest;
  ++(again ? again_ : packets_);
  ports_[c.path[0]].count.queue.again += again;
  if (c.next == c.acknowledged) c.deadline = now_ + c.patience;
  if (!std::exchange(c.timing, true)) {
    plan({c.deadline, What::timeout, id});
  }
  c.furthest = std::max(c.furthest, ++c.next);
  if (c.control) {
    const double rate = std::max(c.nic_rate * SenderRate::kLeastShare, c.control->rate());
    if (rate < c.nic_rate) c.may_send = now_ + static_cast<Picoseconds>(wire / rate + 0.5);
    c.control->on_sent(wire, now_);
  }
  return packet;
}

// Returns the packet that a NIC sends next: one of each connection in turn.
std::uint32_t PacketNetwork::next_of_host(PortState& port) {
  while (!port.turns.empty()) {
    const Connection id = port.turns.front();
    port.turns.pop_front();
    ConnectionState& c = connections_[id];
    c.in_turn = false;
    if (c.next == c.end || c.next - c.acknowledged >= window_) continue;
    const std::uint32_t packet = make_packet(id);
    port.sending = packet;
    port.busy = true;  // so that it does not start another one
    offer(id);
    return packet;
  }
  return kNone;
}

// An answer comes to the sender: all packets before e.number are in.
void PacketNetwork::answered(const Event& e) {
  ConnectionState& c = connections_[e.who];
  if (c.control) c.control->on_answer({now_ - e.left, e.notice}, now_);
  if (e.number > c.acknowledged) {
    c.acknowledged = e.number;
    c.next = std::max(c.next, c.acknowledged);
    c.timeouts = 0;
    c.deadline = now_ + c.patience;
    while (!c.messages.empty() &&
           c.messages.front().first + c.messages.front().packets <= c.acknowledged) {
      c.messages.pop_front();
      --c.came;
    }
  }
  if (e.lost && e.number == c.acknowledged) {
    if (c.control) c.control->on_loss(now_);
    c.next = c.acknowledged;
  }
  offer(e.who);
}

// A retry that a paused NIC holds back is none, but a pause as long as all tries is the last one.
void PacketNetwork::timed_out(Connection id) {
  ConnectionState& c = connections_[id];
  const PortState& nic = ports_[c.path[0]];
  const bool held = nic.paused && c.next == c.acknowledged && c.furthest > c.acknowledged;
  c.timing = c.next > c.acknowledged || held;
  if (!c.timing) return;
  if (now_ >= c.deadline) {
    if (held ? now_ - nic.paused_since >= kTries * c.patience : ++c.timeouts == kTries) {
      gave_up_ = id;
      return;
    }
    if (!held) {
      if (c.control) c.control->on_loss(now_);
      draw_patience(id);
      c.next = c.acknowledged;
      c.timing = false;  // the first packet that is sent starts it
      offer(id);
      if (!nic.paused) return;
      c.timing = true;
    }
    c.deadline = now_ + c.patience;
  }
  plan({c.deadline, What::timeout, id});
}

bool PacketNetwork::paused(Connection id) const {
  const std::vector<Port>& path = connections_[id].path;
  return std::any_of(path.begin(), path.end(), [&](Port port) { return ports_[port].paused; });
}

bool PacketNetwork::in_circle(Connection id) const {
  std::vector<std::vector<Port>> ahead(ports_.size());  // by port: where its packets are now
  for (Port port = 0; port < ports_.size(); ++port)
    for (const Ring& ring : ports_[port].rings)
      for (const std::uint32_t packet : ring.packets) {
        const Packet& p = store_[packet];
        std::vector<Port>& to = ahead[connections_[p.connection].path[p.hop - 1]];
        if (to.empty() || to.back() != port) to.push_back(port);
      }
  std::vector<bool> seen(ports_.size());
  std::vector<Port> found;
  const auto find = [&](Port port) {
    if (!seen[port]) found.push_back(port);
    seen[port] = true;
  };
  for (const Port port : connections_[id].path)
    if (ports_[port].paused) find(port);
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!ports_[found[i]].paused || ahead[found[i]].empty()) return false;
    for (const Port next : ahead[found[i]]) find(next);
  }
  return !found.empty();
}

// ---- Ports ----

// Returns the packet that a switch's port sends next.
std::uint32_t PacketNetwork::next_of_switch(PortState& port) {
  if (setup_.queues.scheduling == Scheduling::fifo) {
    Ring& all = port.rings[0];
    if (all.packets.empty()) return kNone;
    const std::uint32_t packet = all.packets.front();
    all.packets.pop_front();
    return packet;
  }
  if (port.turns.empty()) return kNone;
  const std::uint32_t turn = port.turns.front();
  Ring& ring = port.rings[turn];
  const std::uint32_t packet = ring.packets.front();
  const std::int64_t wire = store_[packet].wire;
  if (ring.credit < wire)
    ring.credit += static_cast<std::int64_t>(largest_packet(port.speed, setup_.payload));
  ring.credit -= wire;
  ring.packets.pop_front();
  if (ring.packets.empty()) {
    ring.credit = 0;
    ring.listed = false;
    port.turns.pop_front();
  } else if (ring.credit < store_[ring.packets.front()].wire) {
    port.turns.pop_front();
    port.turns.push_back(turn);
  }
  return packet;
}

bool PacketNetwork::is_down(const PortState& port) const {
  return port.curve && std::isinf(port.curve->ps_per_byte(at_ + now_));
}

// Returns how long the port sends a packet from now on; sets whether its link goes down meanwhile.
Picoseconds PacketNetwork::time_of(PortState& port, std::uint32_t wire) const {
  if (!port.curve) return static_cast<Picoseconds>(wire * port.speed.ps_per_byte + 0.5);
  const Picoseconds duration = port.curve->duration(at_ + now_, wire);
  for (Picoseconds at = at_ + now_;;) {
    at = port.curve->piece(at).until;
    if (at >= at_ + now_ + duration) return duration;
    if (!std::isinf(port.curve->ps_per_byte(at))) continue;
    port.loses = true;
    return at - at_ - now_;
  }
}

// Drops a packet that is in a switch's queue, or is being sent.
void PacketNetwork::drop(PortState& port, std::uint32_t packet) {
  const Packet& p = store_[packet];
  ++port.count.queue.drops;
  port.queued -= p.wire;
  release(connections_[p.connection].path[p.hop - 1], p.wire);
  free_packet(packet);
}

// Lets an idle port send its next packet.
void PacketNetwork::start(Port number) {
  PortState& port = ports_[number];
  if (port.busy || port.paused) return;
  if (is_down(port)) {
    for (;;) {
      const std::uint32_t lost = next_of_switch(port);
      if (lost == kNone) return;
      drop(port, lost);
    }
  }
  const std::uint32_t packet = port.host ? next_of_host(port) : next_of_switch(port);
  if (packet == kNone) return;
  const Packet& p = store_[packet];
  port.busy = true;
  port.sending = packet;
  const Picoseconds duration = time_of(port, p.wire);
  port.count.busy += duration;
  if (times_ && number < times_->links()) times_->add(number, now_, now_ + duration);
  port.count.longest_wait = std::max(port.count.longest_wait, now_ - p.came);
  port.count.waited += now_ - p.came;
  plan({now_ + duration, What::sent, number});
}

void PacketNetwork::sent(Port number) {
  PortState& port = ports_[number];
  const std::uint32_t packet = std::exchange(port.sending, kNone);
  const Packet& p = store_[packet];
  port.busy = false;
  if (std::exchange(port.loses, false)) {
    drop(port, packet);
    return start(number);
  }
  port.count.bytes += p.bytes;
  port.count.messages += p.last && p.counted;
  ++port.count.queue.packets;
  if (p.hop == 0) connections_[p.connection].sent_until = now_;
  if (p.hop > 0) {
    port.queued -= p.wire;
    release(connections_[p.connection].path[p.hop - 1], p.wire);
  }
  plan({now_ + port.speed.latency, What::arrive, packet});
  start(number);
}

// A packet of the wire behind `behind` has left the switch.
void PacketNetwork::release(Port behind, std::uint32_t wire) {
  if (!setup_.queues.pause) return;
  PortState& port = ports_[behind];
  port.behind -= wire;
  if (!port.asked || port.behind > port.go_at) return;
  port.asked = false;
  plan({now_ + port.speed.latency, What::go, behind});
}

// Returns whether a switch has room for a packet that comes from `from` and goes to `to`.
bool PacketNetwork::take_in(PortState& from, const PortState& to, Port from_number,
                            std::uint32_t wire) {
  const std::uint64_t buffer = setup_.queues.buffer;
  if (!setup_.queues.pause) return to.queued + wire <= buffer;
  if (from.behind + wire > buffer) return false;
  from.behind += wire;
  if (!from.asked && from.behind > from.stop_at) {
    from.asked = true;
    plan({now_ + from.speed.latency, What::stop, from_number});
  }
  return true;
}

void PacketNetwork::arrive(std::uint32_t packet) {
  Packet& p = store_[packet];
  const ConnectionState& c = connections_[p.connection];
  if (p.hop + 1u == c.path.size()) {
    receive(p);
    return free_packet(packet);
  }
  const Port from = c.path[p.hop], number = c.path[++p.hop];
  PortState& to = ports_[number];
  if (!take_in(ports_[from], to, from, p.wire)) {
    ++to.count.queue.drops;
    return free_packet(packet);
  }
  if (c.control && marks(to, p)) {
    p.marked = true;
    ++to.count.queue.marks;
  }
  p.came = now_;
  to.queued += p.wire;
  to.count.queue.longest = std::max(to.count.queue.longest, to.queued);
  const std::uint32_t turn = c.ring[p.hop];
  Ring& ring = to.rings[turn];
  ring.packets.push_back(packet);
  if (setup_.queues.scheduling == Scheduling::fair && !std::exchange(ring.listed, true))
    to.turns.push_back(turn);
  start(number);
}

bool PacketNetwork::marks(const PortState& port, const Packet& p) const {
  if (port.queued < port.mark_from) return false;
  if (port.queued >= port.mark_to) return true;
  const double share = static_cast<double>(port.queued - port.mark_from) /
                       static_cast<double>(port.mark_to - port.mark_from);
  RandomBits bits({setup_.seed, connections_[p.connection].name, p.number, p.hop,
                   static_cast<std::uint64_t>(now_)});
  return bits.unit() < share * setup_.queues.mark_most;
}

// ---- The receiver ----

void PacketNetwork::receive(const Packet& p) {
  ConnectionState& c = connections_[p.connection];
  const bool notice = p.marked && now_ >= c.may_notice;
  if (notice) c.may_notice = now_ + setup_.queues.control->between_notices;
  const bool missing = p.number > c.wanted;
  if (p.number == c.wanted) {
    ++c.wanted;
    c.told = false;
    if (p.last) arrivals_.push_back({c.messages[c.came++].name, now_});
  }
  const bool tell = missing && !std::exchange(c.told, c.told || missing);
  if (!missing || tell || notice) answer(p, notice, tell);
}

void PacketNetwork::answer(const Packet& p, bool notice, bool lost) {
  const ConnectionState& c = connections_[p.connection];
  plan({.at = now_ + c.back,
        .what = What::answer,
        .who = p.connection,
        .number = c.wanted,
        .notice = notice,
        .lost = lost,
        .left = p.left});
}

std::uint32_t PacketNetwork::put(const Packet& packet) {
  if (free_.empty()) {
    store_.push_back(packet);
    return static_cast<std::uint32_t>(store_.size() - 1);
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  store_[index] = packet;
  return index;
}

}  // namespace ghostrank
