#include "emulator/fabric/ofi_frames.h"

#include <cstring>

namespace ghostrank {
namespace {

bool may_be_framed(MessageKind kind) {
  return kind == MessageKind::data || kind == MessageKind::credit || kind == MessageKind::probe ||
         kind == MessageKind::permission;
}

}  // namespace

bool parse_frame(std::span<const std::byte> frame, std::vector<FramePart>& parts) {
  parts.clear();
  while (!frame.empty()) {
    FramePart part;
    if (frame.size() >= sizeof(Header)) {
      std::memcpy(static_cast<void*>(&part.header), frame.data(), sizeof(Header));
      frame = frame.subspan(sizeof(Header));
    } else {
      part.header.bytes = frame.size() + 1;
    }
    if (part.header.bytes > frame.size() || !may_be_framed(part.header.kind)) {
      parts.clear();
      return false;
    }
    part.payload = frame.first(part.header.bytes);
    frame = frame.subspan(part.header.bytes);
    parts.push_back(part);
  }
  return !parts.empty();
}

std::size_t append_to_frame(std::byte* frame, std::size_t used, std::size_t room,
                            const Message& message) {
  const std::uint64_t bytes = message.header.bytes;
  if (bytes > room || used + sizeof(Header) + bytes > room) return used;
  std::memcpy(frame + used, &message.header, sizeof(Header));
  used += sizeof(Header);
  if (message.payload) std::memcpy(frame + used, message.payload.get(), bytes);
  return used + bytes;
}

}  // namespace ghostrank
