// Frames: several small messages of one flow as one message of the provider; pure, knows nothing of
// libfabric.
//
//   [header of the frame, kind kFrameKind | header | payload | header | payload | ...]
//
// A frame is never empty, holds whole messages only and no other frame. What arrives is untrusted:
// parse_frame() takes all of it or nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "emulator/fabric/wire.h"

namespace ghostrank {

inline constexpr auto kFrameKind = static_cast<MessageKind>(4);  // never leaves the fabric
inline constexpr std::uint64_t kMostFrameBytes = 64 << 10;       // without its own header

// Larger messages travel alone: a frame saves the cost of a message, not that of a byte.
inline constexpr std::uint64_t most_in_frame(std::uint64_t frame_bytes) {
  return frame_bytes / 4 < 4096 ? frame_bytes / 4 : 4096;
}

// A message inside a frame, where it lies.
struct FramePart {
  const std::byte* at;
  std::uint64_t bytes;  // of its payload, as its header says

  Header header() const;
  std::span<const std::byte> payload() const { return {at + sizeof(Header), bytes}; }
};

// What is in a frame (after its own header); false, and nothing in `parts`, when it is malformed.
bool parse_frame(std::span<const std::byte> frame, std::vector<FramePart>& parts);

// Appends a message at `used`, if it fits in `room` bytes altogether; returns how many are used
// then, or `used` when it does not fit. A synthetic payload leaves there what was there before.
std::size_t append_to_frame(std::byte* frame, std::size_t used, std::size_t room,
                            const Message& message);

}  // namespace ghostrank
