#include "collectives/schemes/switchml/packets.h"

#include <algorithm>

#include "switch/compiled/lanes.h"
#include "switch/wire/switchml.h"

namespace ghostrank::switchml {
namespace {

constexpr unsigned kNoElements = 7;

unsigned size_code(std::uint64_t elements) {
  return elements == 0 ? kNoElements : elements == 256 ? 3 : elements == 64 ? 1 : 0;
}

class Packets final : public WireFormat {
 public:
  std::string_view name() const override { return "SwitchML over UDP"; }

  void encode(const Note& note, std::span<std::byte> packet) const override {
    packet[0] = static_cast<std::byte>((note.tag + 1u) << 4 | size_code(note.elements));
    packet[1] = static_cast<std::byte>(note.call);
    std::copy_n(note.words.data(), 4, packet.data() + 2);
    store16(packet.data() + 6, static_cast<std::uint16_t>(note.index));
    std::copy_n(note.words.data() + 4, note.words.size() - 4, packet.data() + 8);
    if (note.content.empty()) return;
    turn_lanes(packet.data() + head_bytes(static_cast<Reach>(note.tag)), note.content.data(),
               static_cast<int>(note.elements));
  }

  std::optional<Note> decode(std::span<const std::byte> packet,
                             std::vector<std::byte>& store) const override {
    if (packet.empty()) return std::nullopt;
    const int tag = (load8(packet.data()) >> 4) - 1;
    if (tag < 0 || tag > static_cast<int>(Reach::from_one)) return std::nullopt;
    const std::size_t head = head_bytes(static_cast<Reach>(tag));
    if (packet.size() < head || (packet.size() - head) % 4 != 0) return std::nullopt;
    const std::size_t bytes = packet.size() - head, elements = bytes / 4;
    const bool credit = elements == 0 && tag != static_cast<int>(Reach::everyone);
    if (!credit && (elements > 256 || !valid_elements(static_cast<int>(elements))))
      return std::nullopt;
    if ((load8(packet.data()) & 7) != size_code(elements)) return std::nullopt;
    store.resize(bytes + head - kOverhead);
    turn_lanes(store.data(), packet.data() + head, static_cast<int>(elements));
    std::byte* words = std::copy_n(packet.data() + 2, 4, store.data() + bytes);
    std::copy_n(packet.data() + 8, head - kOverhead - 4, words);
    const std::span<const std::byte> all = store;
    return Note{.tag = static_cast<std::uint8_t>(tag),
                .call = load8(packet.data() + 1),
                .index = load16(packet.data() + 6),
                .type = DataType::int32,
                .elements = elements,
                .content = all.first(bytes),
                .words = all.subspan(bytes)};
  }
};

}  // namespace

const WireFormat& packets() {
  static const Packets kPackets;
  return kPackets;
}

}  // namespace ghostrank::switchml
