#include "emulator/fabric/ofi/frames.h"

#include <cstring>

namespace ghostrank {
namespace {

bool may_be_framed(MessageKind kind) {
  return kind == MessageKind::data || kind == MessageKind::credit || kind == MessageKind::probe ||
         kind == MessageKind::permission || kind == MessageKind::note ||
         kind == MessageKind::passed;
}

}  // namespace

Header FramedMessage::header() const {
  Header header;
  std::memcpy(static_cast<void*>(&header), at, sizeof header);
  return header;
}

bool parse_frame(std::span<const std::byte> frame, std::vector<FramedMessage>& messages) {
  messages.clear();
  while (!frame.empty()) {
    FramedMessage framed{frame.data(), 0};
    bool good = frame.size() >= sizeof(Header);
    if (good) {
      const Header header = framed.header();
      framed.bytes = header.bytes;
      good = framed.bytes <= frame.size() - sizeof(Header) && may_be_framed(header.kind);
    }
    if (!good) {
      messages.clear();
      return false;
    }
    frame = frame.subspan(sizeof(Header) + framed.bytes);
    messages.push_back(framed);
  }
  return !messages.empty();
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
