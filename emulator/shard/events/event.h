// Something due at a rank or link of a shard. One flat cache line, so that it lies in the queue
// itself. Most events are messages that stay in the process: such an event carries all that its
// target needs.
#pragma once

#include <cstdint>
#include <type_traits>

#include "collectives/common/number.h"
#include "emulator/common/moment.h"
#include "emulator/common/pool.h"
#include "emulator/fabric/wire.h"

namespace ghostrank {

struct Flight;

struct Event {
  enum class Kind : std::uint8_t {
    delay_done,  // streams of `rank` go on; `held`: with a transfer of these ends (PairCounter)
    ingress,     // a message for `rank` reaches the NIC by which it comes in
    nvlink,      // a message for `rank` from its own node reaches its NVLink port
    arrival,     // a message for `rank` has passed that NIC or its NVLink port, or passes none
    delivery,    // the same, after a delay at its rank
    post,        // the egress port may send the message `held` through the fabric
    call_done,   // a call without messages, or of agents, ends for `flight` and its next members
    timer,       // of an agent; `group`: scheme, `sequence`: timer, bytes(): number of the arming
    link,        // a message reaches a link: target `rank` or, in a parcel, its next link
    landing,     // a message has passed its links and reaches the NIC by which it comes in
    fluid,       // a call that is a flow begins or ends; `held`: its number in FluidCalls
    rates,       // flows have come or gone: all get their rates
    packets,     // packets of the modelled network go on
    outside,     // a message of the slice has come to the outside; `sequence`: its release
  };
  Moment t;
  // arrival: the flight that the sender believes it is for; the target checks it, and searches
  // where it is null. post: the sender's flight.
  Flight* flight = nullptr;
  std::uint64_t size_and_number = 0;  // of a message, as in Header; the number in the low bits
  std::uint32_t rank = 0;             // local index
  std::uint32_t order = 0;            // set by the queue; orders events of one time; wraps
  // Of a message, as in Header.
  std::uint32_t group = 0, sequence = 0;
  std::int32_t source = 0;
  std::uint32_t actor = 0;
  // In Shard::held_: a message to post or a payload; of notes see kSharedPayload. Of link and
  // landing: in Shard::on_links_.
  std::uint32_t held = kNil;
  std::uint16_t channel = 0;
  std::uint8_t via = 0;  // of a message: Header::nic
  MessageKind message : 4 = MessageKind::data;
  Kind kind : 4 = Kind::arrival;

  std::uint64_t bytes() const { return size_and_number >> kNumberBits; }
  std::uint16_t number() const { return static_cast<std::uint16_t>(size_and_number); }
  // Writes both fields at once: they share a byte, so writing one alone first reads that byte, and
  // a new event's slot is not in the cache.
  void set_kind(Kind k, MessageKind m) {
    message = m;
    kind = k;
  }
  void set_size(std::uint64_t bytes, std::uint16_t number) {
    size_and_number = bytes << kNumberBits | number;
  }

 private:
  static constexpr int kNumberBits = 64 - kBytesBits;
};
static_assert(std::is_trivially_copyable_v<Event> && sizeof(Event) == 64);

// Leaves the shard. For another shard: the event and its payload. For the fabric: the message, and
// `event` names its sender. On links: `message.header` as shard/links.cpp describes it.
struct Parcel {
  Event event;
  Message message;
  // Number of the shard's flow that takes the message or, behind the flows, of the packet flow; on
  // links the path.
  std::int32_t flow = 0;
  Nic nic;  // by which it leaves
};

}  // namespace ghostrank
