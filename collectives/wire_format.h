// How a scheme's packets are laid out on the wire, for a switch or a peer that is not ghostrank.
// The format does not contain sender and receiver: the datagram's addresses give them.
//
// The checker (check/agents/checker.h) sends every packet of every play through this format.
// Between processes a packet's payload is the output of encode(); inside a process nobody reads the
// payload, so nobody encodes it.
//
// Units: bytes. Threading: immutable, may be shared.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "collectives/agent.h"

namespace ghostrank {

class WireFormat {
 public:
  virtual ~WireFormat() = default;
  virtual std::string_view name() const = 0;
  // `packet` has note_bytes() bytes, all 0. If ranks hold no real data, the note has no content,
  // and encode() leaves the elements 0.
  virtual void encode(const Note& note, std::span<std::byte> packet) const = 0;
  // Accepts any bytes; returns nullopt if they are no packet of this format. The note's content and
  // words lie in `packet` or in `store`. decode(encode(note)) equals the note, except that it has
  // content even if the note had none.
  virtual std::optional<Note> decode(std::span<const std::byte> packet,
                                     std::vector<std::byte>& store) const = 0;
};

// What is wrong with a note that was decoded from `bytes` bytes; empty: nothing.
std::string_view malformed(const Note& note, std::uint64_t bytes, std::uint64_t overhead);

}  // namespace ghostrank
