// The packets of OmniReduce's Algorithm 2 on the wire; see agents.h.
#include <algorithm>
#include <vector>

#include "collectives/schemes/omnireduce/rounds.h"

namespace ghostrank::omnireduce {
namespace {

void store32(std::byte* to, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) to[i] = static_cast<std::byte>(value >> (24 - 8 * i));
}
std::uint32_t load32(const std::byte* from) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | std::to_integer<std::uint32_t>(from[i]);
  return value;
}

// Copies elements, and with `reverse` turns the bytes of each around.
void copy_elements(std::span<const std::byte> from, std::size_t element, bool reverse,
                   std::byte* to) {
  std::copy(from.begin(), from.end(), to);
  for (std::size_t at = 0; reverse && at < from.size(); at += element)
    std::reverse(to + at, to + at + element);
}

//   0 round : 32   4 set : 1, slot : 15   6 next : 32   10 type : 8   11 elements
// Numbers are big-endian, elements little-endian, but for a switch. The types 1 and 2 are the
// source's.
class Packets final : public WireFormat {
 public:
  explicit Packets(bool for_switch) : for_switch_(for_switch) {}
  std::string_view name() const override {
    return for_switch_ ? "OmniReduce over UDP, for a switch" : "OmniReduce over UDP";
  }

  void encode(const Note& note, std::span<std::byte> packet) const override {
    const Words words = words_in(note);
    store32(packet.data(), words.round);
    packet[4] = static_cast<std::byte>(note.index >> 8);
    packet[5] = static_cast<std::byte>(note.index);
    store32(packet.data() + 6, words.next);
    packet[10] = static_cast<std::byte>(static_cast<int>(note.type) + 1);
    copy_elements(note.content, bytes_of(note.type), for_switch_, packet.data() + kHead);
  }

  std::optional<Note> decode(std::span<const std::byte> packet,
                             std::vector<std::byte>& store) const override {
    if (packet.size() < kHead) return std::nullopt;
    const int type = std::to_integer<int>(packet[10]) - 1;
    if (type < 0 || type >= kDataTypes) return std::nullopt;
    const std::size_t bytes = packet.size() - kHead;
    const std::uint32_t element = bytes_of(static_cast<DataType>(type));
    if (bytes % element != 0) return std::nullopt;
    const Words words{load32(packet.data()), load32(packet.data() + 6)};
    // The content first, because elements must be aligned.
    store.resize(bytes + kPacketWords);
    copy_elements(packet.subspan(kHead), element, for_switch_, store.data());
    std::memcpy(store.data() + bytes, &words, sizeof words);
    const std::span<const std::byte> all = store;
    return Note{.index = std::to_integer<std::uint32_t>(packet[4]) << 8 |
                         std::to_integer<std::uint32_t>(packet[5]),
                .type = static_cast<DataType>(type),
                .elements = bytes / element,
                .content = all.first(bytes),
                .words = all.subspan(bytes)};
  }

 private:
  static constexpr std::size_t kHead = kPacketOverhead + kPacketWords;
  bool for_switch_;
};

}  // namespace

const WireFormat& packet_format(bool for_switch) {
  static const Packets kOfHosts(false), kOfSwitch(true);
  return for_switch ? kOfSwitch : kOfHosts;
}

}  // namespace ghostrank::omnireduce
