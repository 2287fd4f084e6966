// Frames: several small messages of one flow in one message of the provider. Pure; knows nothing of
// libfabric.
//
//   [header of the frame, kind kFrameKind | header | payload | header | payload | ...]
//
// A frame is never empty and holds whole messages only, no other frame. Arriving bytes are
// untrusted: parse_frame() accepts a whole frame or nothing.
//
// Units: bytes. Threading: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "emulator/fabric/wire.h"

namespace ghostrank {

inline constexpr auto kFrameKind = static_cast<MessageKind>(4);  // only the fabric sees it
inline constexpr std::uint64_t kMostFrameBytes = 64 << 10;  // of a frame, without its own header

// Returns the largest payload in bytes of a message in a frame. Larger messages travel alone,
// because a frame saves the cost per message, not the cost per byte.
inline constexpr std::uint64_t most_in_frame(std::uint64_t frame_bytes) {
  return frame_bytes / 4 < 4096 ? frame_bytes / 4 : 4096;
}

// A message inside a frame; points into the frame.
struct FramedMessage {
  const std::byte* at;
  std::uint64_t bytes;  // of its payload, from its header

  Header header() const;
  std::span<const std::byte> payload() const { return {at + sizeof(Header), bytes}; }
};

// Finds the messages in a frame (without the frame's own header). Returns false, with `messages`
// empty, when the frame is malformed.
bool parse_frame(std::span<const std::byte> frame, std::vector<FramedMessage>& messages);

// Appends a message at offset `used` if it fits in `room` bytes in all. Returns how many bytes are
// then used, or `used` when it does not fit. A synthetic payload leaves the frame's old bytes in
// place.
std::size_t append_to_frame(std::byte* frame, std::size_t used, std::size_t room,
                            const Message& message);

}  // namespace ghostrank
