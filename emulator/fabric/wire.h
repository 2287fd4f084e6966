// A message as the fabric and the wire carry it: a fixed 64-byte header and a payload. Inside the
// engine a message is an Event (emulator/shard/events/event.h); it becomes a Message when it leaves
// through the fabric. The payload is real in verify mode, and where it holds the words of an
// agent's note; else it is synthetic: its bytes cross the wire with arbitrary content, and
// `payload` is null.
//
// The header travels in host byte order, because all processes run the same build (the bootstrap
// refuses others). Threading: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "profiles/units.h"

namespace ghostrank {

using Payload = std::unique_ptr<std::byte[]>;

// A message has fewer than 2^48 bytes; the other 16 bits of the field hold its number.
inline constexpr int kBytesBits = 48;
inline constexpr std::uint64_t kMostBytes = (std::uint64_t{1} << kBytesBits) - 1;

enum class MessageKind : std::uint8_t {
  data = 1,
  credit = 2,  // a slot at the receiver is free again
  probe = 3,
  permission = 5,  // the receiver has posted a receive; 4 is a frame, inside the fabric only
  // From an agent; docs/wire-format.md says what the fields then hold.
  note = 6,
  passed = 7,  // out of a slice; likewise
  part = 8,    // of one that several queue pairs carry, but the last; never on a real network
};

struct Header {
  std::uint64_t nonce = 0;  // of the run; a message with another one is a stray
  std::uint32_t group = 0;  // index into Workload::groups; kPointToPoint set for send/recv
  // Number of the collective in its group; of a send or receive, see transfer_sequence().
  std::uint32_t sequence = 0;
  std::int32_t source = 0;  // group rank
  std::int32_t target = 0;  // world rank
  std::uint16_t channel = 0;
  MessageKind kind = MessageKind::data;
  // The NIC by which it comes into the target's node, from 1; 0: the NIC of the target's GPU.
  std::uint8_t nic = 0;
  std::uint32_t actor = 0;  // index of the actor that sends the data, in the collective
  std::uint64_t bytes : kBytesBits = 0;  // payload of the whole message
  // Number among the messages that the actor has sent in the collective, modulo 2^16. It grows on
  // each connection.
  std::uint64_t number : 16 = 0;
  Picoseconds start = 0;      // when its serialisation ideally began, in emulated time
  std::uint32_t slip_ns = 0;  // lateness that hosts have caused in the chain before it, emulated
  std::uint32_t late_ns = 0;  // how long after `start` the fabric really got it, emulated
  std::uint64_t offset = 0;   // of this fragment; the fabric sets it
};
static_assert(sizeof(Header) == 64);

// The `number`-th transfer from one member of a group to another. The lowest bit is its direction,
// because credits for a rank's data to a peer travel among the peer's own data to that rank.
constexpr std::uint32_t transfer_sequence(std::uint32_t number, std::int32_t source,
                                          std::int32_t target) {
  return number << 1 | (source > target);
}

inline constexpr int kMostChosenNics = 254;  // NICs that Header::nic can name

inline constexpr std::uint32_t kPointToPoint = 1u << 31;
// Marks, in `group`, the connections of a scheme; Flows uses it.
inline constexpr std::uint32_t kSchemeFlows = 1u << 30;

// For Header::slip_ns and late_ns.
constexpr std::uint32_t to_ns(Picoseconds t) {
  return t <= 0 ? 0
                : static_cast<std::uint32_t>(t / kPicosPerNano < 0xffffffff ? t / kPicosPerNano
                                                                            : 0xffffffff);
}

struct Message {
  Header header;
  Payload payload;  // null: synthetic
};

}  // namespace ghostrank
