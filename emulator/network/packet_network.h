// A network played packet by packet, for small fabrics and to check the other models. A connection
// (a queue pair) has a fixed path of ports; the first is its sender's NIC, the last one leads from
// a switch to its receiver's NIC. A port serialises packets at its rate; a switch sends a packet on
// when all of it has come.
//
// clang-format off
//
//   NIC  port 0 ──wire──> switch  port 1 ──wire──> switch  port 2 ──wire──> NIC
//        one packet of each         queue            queue                  in order, or dropped
//        connection in turn
//
// clang-format on
//
// Queues (profiles/job/queues.h): `fifo`, or `fair`: deficit round robin between the connections of
// a port. A switch has `buffer` bytes for each of its ports:
//   without pause  in front of each outgoing port; a packet that finds it full is dropped.
//   with pause     behind each incoming wire. When the room left for a wire is no more than the
//                  bytes that may be under way on it, the switch pauses the port at the other end
//                  (PFC, one priority), and lets it go on when it holds two packets less. A packet
//                  that finds the buffer full all the same is dropped.
// A queue marks packets as RED does (ECN), which slows their senders as the congestion control says
// (collectives/congestion_control.h).
//
// Connections retransmit from the first lost packet (go-back-N): the receiver drops all packets but
// the next one and tells the sender once which one it wants. A sender without an answer for one
// to two times `retransmit` begins again at the first packet that is not acknowledged, and gives up
// after seven retries in a row. While its NIC is paused it can try nothing, and gives up when the
// pause has lasted as long as all tries: so end ports that pause each other in a circle (a PFC
// deadlock). Each timeout is drawn anew (InfiniBand allows up to four times the configured one):
// else senders that lost their packets together would lose them together for ever.
//
// A port whose link is down (a curve with an infinite time per byte) drops what is in its queue and
// what comes: switches keep nothing for a dead link, with pauses or without. The packet that is on
// its way when the link goes down is lost, too.
//
// Left out: acknowledgements and notices take the path's latency, but no bandwidth, and are never
// lost; nor do pauses wait for the packet under way on the wire back. Receivers keep up. All
// traffic has one priority. A switch's buffer is divided among its ports beforehand.
//
// Events of one time happen in the order in which they were planned, and probabilities are drawn
// from (seed, connection's name, packet), so the same calls give the same results, also beside
// others that share no port with them.
//
// Units: emulated picoseconds, bytes. Errors: gave_up(). Threading: one owner.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "emulator/network/link_times.h"
#include "emulator/network/port.h"
#include "emulator/network/queue_count.h"
#include "profiles/job/nic_rates.h"
#include "profiles/job/queues.h"

namespace ghostrank {

class PacketNetwork {
 public:
  using Port = std::uint32_t;
  using Connection = std::uint32_t;
  static constexpr int kTries = 8;  // of a packet: seven times again, as retry_cnt allows at most
  static constexpr Picoseconds kNever = std::numeric_limits<Picoseconds>::max();

  struct Setup {
    std::vector<LinkSpeed> ports;  // rate and framing; latency: of the wire behind the port
    // By port: how its rate changes, never above that of `ports`; null, or past the end: it does
    // not. Those of the first `events` ports only where clear() says so; NICs' are always finite.
    std::vector<const RateCurve*> curves;
    std::size_t events = 0;
    std::uint32_t payload = 4096;  // message bytes of a packet, at most
    QueueSpec queues;
    std::uint64_t seed = 1;
  };
  struct Arrival {
    std::uint32_t message;  // as named in send()
    Picoseconds at;
  };
  struct Count {                            // of a port
    std::uint64_t bytes = 0, messages = 0;  // payload that left it; messages whose last packet did
    Picoseconds busy = 0, longest_wait = 0, waited = 0;  // of packets
    QueueCount queue;
  };

  explicit PacketNetwork(Setup setup);

  // The least buffer, in bytes, with which pausing loses nothing at this port.
  static std::uint64_t least_buffer(const LinkSpeed& port, std::uint32_t payload);

  // `name`: what tells it from others whatever these are; without one it is its number.
  Connection connect(std::span<const Port> path, std::optional<std::uint64_t> name = {});
  // Sends a message of any size from `at` on, not before now(). Where it is not `counted`, ports
  // count its packets but no message.
  void send(Connection connection, std::uint64_t bytes, std::uint32_t message, Picoseconds at,
            bool counted = true);

  Picoseconds now() const { return now_; }
  // When the next thing happens; kNever: all messages have come and are acknowledged.
  Picoseconds next() const { return events_.empty() ? kNever : events_.front().at; }
  // Plays the events before `until`, but none after the first time at which messages come in.
  // Returns these, valid until the next call.
  std::span<const Arrival> play(Picoseconds until);

  // When the connection's last packet so far left its NIC; kNever: it has packets that have not.
  Picoseconds sending_until(Connection id) const {
    const ConnectionState& c = connections_[id];
    return c.next < c.end ? kNever : c.sent_until;
  }
  const Count& count(Port port) const { return ports_[port].count; }
  // Packets of all connections that NICs have sent for the first time, and again.
  std::uint64_t packets() const { return packets_; }
  std::uint64_t again() const { return again_; }
  // The connection that gave up; nothing happens any more then.
  std::optional<Connection> gave_up() const { return gave_up_; }
  // Whether a port on the connection's path is paused now.
  bool paused(Connection id) const;
  // Whether those are paused for ever: all ports that hold what they have sent are paused, too.
  bool in_circle(Connection id) const;
  // Forgets all messages, connections and counts. Time 0 is then this time of the curves.
  // `with_events`: also of those of the first ports (Setup::events).
  void clear(Picoseconds at = 0, bool with_events = true);
  // Notes in `times` from now on when its first ports are busy, as many as it has links. Null:
  // nowhere.
  void watch(LinkTimes* times) { times_ = times; }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;

  enum class What : std::uint8_t { begin, sent, arrive, stop, go, answer, wake, timeout };
  struct Event {
    Picoseconds at;
    What what;
    std::uint32_t who;                  // connection, port or, of arrive, packet
    std::uint64_t number = 0;           // of answer: the packet wanted next; of begin: bytes
    std::uint32_t message = 0;          // of begin
    bool notice = false, lost = false;  // of answer: of marks; begin again
    bool counted = true;                // of begin
    Picoseconds left = 0;               // of answer: when its packet began to leave its NIC
    std::uint64_t order = 0;            // set by plan()
    bool operator>(const Event& o) const { return at != o.at ? at > o.at : order > o.order; }
  };
  struct Packet {
    Connection connection;
    std::uint64_t number;
    std::uint32_t bytes, wire;  // of the message; on the wire
    std::uint16_t hop;          // the port in whose queue it is, or that it last left
    bool marked, last;          // last: of its message
    bool counted;               // its message is
    Picoseconds came;           // to its queue
    Picoseconds left;           // its NIC, with the first byte
  };
  struct Message {
    std::uint64_t first, packets;  // numbers of its packets
    std::uint64_t bytes;
    std::uint32_t name;
    bool counted;
  };
  struct Ring {  // packets in a port: of a connection, or (fifo) of all
    std::deque<std::uint32_t> packets;
    std::int64_t credit = 0;
    bool listed = false;
  };
  struct PortState {
    LinkSpeed speed;
    const RateCurve* curve = nullptr;                  // null: the rate of `speed`
    bool host = false;                                 // a sender's NIC
    bool busy = false, paused = false, asked = false;  // asked: it was told to pause
    bool loses = false;                                // its link goes down before `sending` is out
    std::uint32_t sending = kNone;                     // packet
    std::uint64_t queued = 0;                          // bytes in its queues
    std::uint64_t behind = 0;                          // bytes from it that the next switch holds
    std::uint64_t stop_at = 0, go_at = 0;              // of `behind`
    std::uint64_t mark_from = 0, mark_to = 0;
    Picoseconds paused_since = 0;
    std::vector<Ring> rings;          // fifo: one
    std::deque<std::uint32_t> turns;  // fair: rings with packets; of a NIC: connections
    Count count;
  };
  struct ConnectionState {
    std::uint64_t name = 0;  // for draws
    std::vector<Port> path;
    std::vector<std::uint32_t> ring;                         // in each port
    Picoseconds back = 0;                                    // latency of an answer
    std::deque<Message> messages;                            // not yet acknowledged
    std::uint64_t end = 0;                                   // number after the last packet to send
    std::uint64_t next = 0, acknowledged = 0, furthest = 0;  // packets; furthest: ever sent
    Picoseconds may_send = 0;                                // by its rate
    Picoseconds sent_until = 0;                              // when its last packet left the NIC
    bool in_turn = false, waking = false, timing = false;
    Picoseconds deadline = 0;
    int timeouts = 0;          // in a row
    Picoseconds patience = 0;  // until the next one
    double nic_rate = 0;
    std::unique_ptr<SenderRate> control;  // null: nothing slows it down
    // The receiver's end.
    std::uint64_t wanted = 0;
    bool told = false;           // that `wanted` is missing
    std::size_t came = 0;        // messages of `messages` that are in
    Picoseconds may_notice = 0;  // from then on
  };

  void plan(Event event);
  void happen(const Event& e);
  void begin(const Event& e);
  void offer(Connection id);
  std::uint32_t make_packet(Connection id);
  std::uint32_t next_of_host(PortState& port);
  std::uint32_t next_of_switch(PortState& port);
  void start(Port number);
  Picoseconds time_of(PortState& port, std::uint32_t wire) const;
  bool is_down(const PortState& port) const;
  void sent(Port number);
  void drop(PortState& port, std::uint32_t packet);
  void arrive(std::uint32_t packet);
  bool take_in(PortState& from, const PortState& to, Port from_number, std::uint32_t wire);
  void receive(const Packet& p);
  void answer(const Packet& p, bool notice, bool lost);
  void answered(const Event& e);
  void timed_out(Connection id);
  void draw_patience(Connection id);
  void release(Port behind, std::uint32_t wire);
  bool marks(const PortState& port, const Packet& p) const;
  std::uint32_t put(const Packet& packet);
  void free_packet(std::uint32_t packet) { free_.push_back(packet); }

  Setup setup_;
  std::uint64_t window_ = 0;      // packets that a connection may have under way
  Picoseconds now_ = 0, at_ = 0;  // at_: argument of clear()
  std::uint64_t planned_ = 0;
  LinkTimes* times_ = nullptr;
  std::vector<Event> events_;  // a heap
  std::vector<Arrival> arrivals_;
  std::vector<PortState> ports_;
  std::vector<ConnectionState> connections_;
  std::vector<Packet> store_;
  std::vector<std::uint32_t> free_;
  std::uint64_t packets_ = 0, again_ = 0;
  std::optional<Connection> gave_up_;
};

}  // namespace ghostrank
