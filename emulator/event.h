// What is to happen at a rank of a shard: small and flat, so that it lies in the queue itself. Most
// are messages that stay in the process: of those an event carries all that their target needs.
//
// Threading: a value.
#pragma once

#include <cstdint>
#include <type_traits>

#include "emulator/moment.h"
#include "emulator/pool.h"
#include "emulator/wire.h"

namespace ghostrank {

struct Flight;

struct Event {
  enum class Kind : std::uint8_t {
    compute_done,  // `stream` of `rank` goes on
    arrival,       // a message for `rank`
    delivery,      // the same, after what holds it up at its rank
    post,          // the egress has its turn for the message `held`, to another process
    node_done,     // a call inside a node ends for `flight` and those behind it
  };
  Moment t;
  // arrival: what it is for, as its sender believes: the target makes sure of it, or searches where
  // it is null; post: the sender's.
  Flight* flight = nullptr;
  std::uint64_t bytes = 0;
  std::uint32_t rank = 0;  // local index
  // Of a message, as Header has them.
  std::uint32_t group = 0, sequence = 0;
  std::int32_t source = 0;
  std::uint32_t actor = 0;
  std::int32_t nic = 0;       // arrival: by which it comes in; post: by which it leaves
  std::uint32_t held = kNil;  // in the shard's pool: what is to be posted, or an arrival's payload
  std::uint16_t channel = 0;
  MessageKind message = MessageKind::data;
  Kind kind = Kind::arrival;
  std::uint8_t stream = 0;
  bool through_nic = false;  // arrival: the ingress has not been passed yet
};
static_assert(std::is_trivially_copyable_v<Event> && sizeof(Event) <= 72);

// What leaves the shard: for another one the event and its payload, for another process the
// message; then `event` says who sends it and by which NIC.
struct Parcel {
  Event event;
  Message message;
  std::int32_t flow = 0;  // of the shard's flows, which takes the message
};

}  // namespace ghostrank
