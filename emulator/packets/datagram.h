// What a datagram holds, and the checks that it must pass before its fields are used.
// docs/wire-format.md describes its format.
//
// Units: bytes. Errors: a malformed datagram is a stray. Threading: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "emulator/fabric/wire.h"

namespace ghostrank {

struct Datagram {
  Header header;
  std::span<const std::byte> payload;  // points into the parsed bytes
};

// Parses one datagram; empty: it is a stray. Compares the nonce with the run's before it reads any
// other field.
std::optional<Datagram> parse_datagram(std::span<const std::byte> bytes, std::uint64_t nonce);

// Appends to `arrived` the datagrams of one piece. The kernel may have joined several of `segment`
// bytes each, the last perhaps shorter; `segment` 0: the piece is one datagram. Keeps a payload's
// words or, with `keep_payload`, all of it. Returns the number of strays.
std::uint64_t take_datagrams(std::span<const std::byte> piece, std::size_t segment,
                             std::uint64_t nonce, bool keep_payload, std::vector<Message>& arrived);

}  // namespace ghostrank
