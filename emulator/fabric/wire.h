// A message as fabrics and the wire know it: a fixed 64-byte header and, in verify mode, its
// payload. (Inside the engine it is an Event, event.h; it becomes a Message when it leaves the
// process.) Without verify the payload is synthetic: the bytes on the wire are real, their content
// is not, and `payload` stays null.
//
// The header travels in host byte order between processes of one build (the bootstrap refuses
// others).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "profiles/units.h"

namespace ghostrank {

using Payload = std::unique_ptr<std::byte[]>;

// The size of a message in bytes is below 2^48; beside it lies the message's number.
inline constexpr int kBytesBits = 48;
inline constexpr std::uint64_t kMostBytes = (std::uint64_t{1} << kBytesBits) - 1;

enum class MessageKind : std::uint8_t {
  data = 1,
  credit = 2,  // a slot of the receiver is free again
  probe = 3,
  permission = 5,  // a receive has been posted; 4 is a frame, which only a fabric sees
  note = 6,        // of an agent; see docs/wire-format.md for what the fields then hold
};

struct Header {
  std::uint64_t nonce = 0;     // of the run: strays are dropped and counted
  std::uint32_t group = 0;     // index into Workload::groups; kPointToPoint set for send/recv
  std::uint32_t sequence = 0;  // of the collective in its group, or of the pair's send
  std::int32_t source = 0;     // rank in the group
  std::int32_t target = 0;     // global rank
  std::uint16_t channel = 0;
  MessageKind kind = MessageKind::data;
  // By which it comes into the target's node, counted from 1; 0: that of the target's GPU.
  std::uint8_t nic = 0;
  std::uint32_t actor = 0;               // of the data's sender, within the collective
  std::uint64_t bytes : kBytesBits = 0;  // payload of the whole message
  // Among those that the actor has sent in the collective, modulo 2^16. On one connection it grows.
  std::uint64_t number : 16 = 0;
  Picoseconds start = 0;      // when its serialisation ideally began, in emulated time
  std::uint32_t slip_ns = 0;  // lateness that the chain behind it owes to its hosts, emulated
  std::uint32_t late_ns = 0;  // how much after `start` it was really handed to the fabric, emulated
  std::uint64_t offset = 0;   // of this fragment (set by the fabric)
};
static_assert(sizeof(Header) == 64);

inline constexpr int kMostChosenNics = 254;  // that Header::nic can tell apart

inline constexpr std::uint32_t kPointToPoint = 1u << 31;
inline constexpr std::uint32_t kSchemeFlows = 1u << 30;  // names a scheme's connections to Flows

struct Message {
  Header header;
  Payload payload;  // null: synthetic
};

}  // namespace ghostrank
