#include "emulator/packets/datagram.h"

#include <algorithm>
#include <cstring>

namespace ghostrank {

std::optional<Datagram> parse_datagram(std::span<const std::byte> bytes, std::uint64_t nonce) {
  if (bytes.size() < sizeof(Header)) return std::nullopt;
  std::uint64_t theirs = 0;
  static_assert(offsetof(Header, nonce) == 0);
  std::memcpy(&theirs, bytes.data(), sizeof theirs);
  if (theirs != nonce) return std::nullopt;
  Datagram d{{}, bytes.subspan(sizeof(Header))};
  std::memcpy(static_cast<void*>(&d.header), bytes.data(), sizeof(Header));
  const bool known = d.header.kind == MessageKind::note || d.header.kind == MessageKind::probe;
  if (!known || d.header.bytes != d.payload.size() || d.header.number > d.payload.size())
    return std::nullopt;
  return d;
}

std::uint64_t take_datagrams(std::span<const std::byte> piece, std::size_t segment,
                             std::uint64_t nonce, bool keep_payload,
                             std::vector<Message>& arrived) {
  std::uint64_t strays = 0;
  do {  // an empty piece is one datagram, too
    const std::size_t size = segment == 0 ? piece.size() : std::min(segment, piece.size());
    const std::optional<Datagram> d = parse_datagram(piece.first(size), nonce);
    piece = piece.subspan(size);
    if (!d) {
      ++strays;
      continue;
    }
    Message& m = arrived.emplace_back(d->header, nullptr);
    const std::size_t kept = keep_payload ? d->payload.size() : std::size_t{d->header.number};
    if (kept == 0) continue;
    m.payload.reset(new std::byte[kept]);
    std::memcpy(m.payload.get(), d->payload.data(), kept);
  } while (!piece.empty());
  return strays;
}

}  // namespace ghostrank
