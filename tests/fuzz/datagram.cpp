// Input of the socket for packets: three datagrams that the kernel has joined, damaged.
#include "emulator/packets/datagram.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tests/fuzz/damage.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace ghostrank;

constexpr std::uint64_t kNonce = 0x74736f6867;  // "ghost"
constexpr std::uint64_t kPayload = 100;
constexpr std::size_t kSegment = sizeof(Header) + kPayload;

// One piece with words, one without, and a last one that is shorter.
std::string sample() {
  std::string piece;
  for (const std::uint64_t bytes : {kPayload, kPayload, kPayload / 2}) {
    Header h;
    h.nonce = kNonce;
    h.kind = bytes == kPayload ? MessageKind::note : MessageKind::probe;
    h.bytes = bytes & kMostBytes;
    h.number = piece.empty() ? 16 : 0;
    piece.append(reinterpret_cast<const char*>(&h), sizeof h).append(bytes, 'x');
  }
  return piece;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string whole = sample();
  const std::string bytes = fuzz::damaged(whole, data, size);
  const auto* const first = reinterpret_cast<const std::byte*>(bytes.data());
  const std::vector<std::byte> piece(first, first + bytes.size());  // ASan guards its end
  bool good = false;
  for (const std::size_t segment : {kSegment, std::size_t{0}}) {
    for (const bool keep : {false, true}) {
      std::vector<Message> arrived;
      const std::uint64_t strays = take_datagrams(piece, segment, kNonce, keep, arrived);
      const std::size_t pieces =
          segment == 0 ? 1 : std::max<std::size_t>(1, (piece.size() + segment - 1) / segment);
      fuzz::require(strays + arrived.size() == pieces);
      for (const Message& m : arrived) {
        const std::uint64_t kept = keep ? m.header.bytes : m.header.number;
        fuzz::require(m.header.nonce == kNonce && m.header.bytes + sizeof(Header) <= piece.size());
        fuzz::require(m.header.number <= m.header.bytes && (m.payload != nullptr) == (kept > 0));
      }
      good |= segment > 0 && arrived.size() == 3;
    }
  }
  fuzz::accepted += good;
  return 0;
}
