// What is to happen at a rank of a shard: one cache line, and flat, so that it lies in the queue
// itself. Most are messages that stay in the process: of those an event carries all that their
// target needs.
//
// Threading: a value.
#pragma once

#include <cstdint>
#include <type_traits>

#include "emulator/common/moment.h"
#include "emulator/common/pool.h"
#include "emulator/fabric/wire.h"

namespace ghostrank {

struct Flight;

struct Event {
  enum class Kind : std::uint8_t {
    compute_done,  // a stream of `rank` goes on
    ingress,       // a message for `rank` is before the NIC by which it comes in
    arrival,       // it has passed, or passes none
    delivery,      // the same, after what holds it up at its rank
    post,          // the egress has its turn for the message `held`, to another process
    call_done,     // a call inside a node or of agents ends for `flight` and those behind it
    timer,         // of an agent: `group` its scheme, `sequence` the timer, the size which arming
    link,          // a message is before a link, `rank`; of a parcel, before its next one
    landing,       // it has passed its links, and is before the NIC by which it comes in
  };
  Moment t;
  // arrival: what it is for, as its sender believes: the target makes sure of it, or searches where
  // it is null; post: the sender's.
  Flight* flight = nullptr;
  std::uint64_t size_and_number = 0;  // a message: as Header has them, the number in the low bits
  std::uint32_t rank = 0;             // local index
  std::uint32_t order = 0;            // of the queue, among events of one time; wraps
  // Of a message, as Header has them.
  std::uint32_t group = 0, sequence = 0;
  std::int32_t source = 0;
  std::uint32_t actor = 0;
  std::uint32_t held = kNil;  // in the shard's pool: what is to be posted, or an arrival's payload
  std::uint16_t channel = 0;
  std::uint8_t via = 0;  // a message: Header::nic; compute_done: the stream
  MessageKind message : 4 = MessageKind::data;
  Kind kind : 4 = Kind::arrival;

  std::uint64_t bytes() const { return size_and_number >> kNumberBits; }
  std::uint16_t number() const { return static_cast<std::uint16_t>(size_and_number); }
  // Both in one piece: to write a field that shares a place with another is to read it first, and
  // a new event's place is far away.
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

// What leaves the shard: for another one the event and its payload, for another process the
// message; then `event` says who sends it. On links `message.header` has what shard/links.cpp says.
struct Parcel {
  Event event;
  Message message;
  // Of the shard's flows, or behind them its ways: which takes the message; on links which of the
  // equal ways.
  std::int32_t flow = 0;
  std::int32_t nic = 0;  // by which it leaves
};

}  // namespace ghostrank
