// What a datagram holds, and what is checked before anything of it is believed. The form is
// described in docs/wire-format.md.
//
// Threading: plain functions.
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
  std::span<const std::byte> payload;  // of what was parsed
};

// Empty: it is a stray. Nothing is read before the nonce is known to be the run's.
std::optional<Datagram> parse_datagram(std::span<const std::byte> bytes, std::uint64_t nonce);

// Appends the datagrams that arrived in one piece: those of `segment` bytes each that the kernel
// joined, the last perhaps shorter; 0: only one. Keeps the words of a payload, or all of it.
// Returns how many were strays.
std::uint64_t take_datagrams(std::span<const std::byte> piece, std::size_t segment,
                             std::uint64_t nonce, bool keep_payload, std::vector<Message>& arrived);

}  // namespace ghostrank
