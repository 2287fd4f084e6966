// How the packets of a scheme look on a wire of its own: what a switch, or a peer that is not
// ghostrank, reads and writes. From whom and to whom a packet goes is no part of it: addresses say
// that, as they do for every datagram.
//
// The checker (agent_checker.h) sends every packet of every play through it. Between processes a
// packet's payload is what encode() writes; inside a process nothing reads it, so nobody writes it.
//
// Units: bytes. Threading: immutable and shared.
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
  // `packet` has note_bytes() bytes, all 0. Where ranks hold no real data the note has no content,
  // and its elements stay 0.
  virtual void encode(const Note& note, std::span<std::byte> packet) const = 0;
  // Of anything: empty where it is no such packet. What the note refers to lies in `packet` or in
  // `store`. decode(encode(note)) is the note, but for content that it did not have.
  virtual std::optional<Note> decode(std::span<const std::byte> packet,
                                     std::vector<std::byte>& store) const = 0;
};

// What is wrong with a note that was decoded from so many bytes; empty: nothing.
std::string_view malformed(const Note& note, std::uint64_t bytes, std::uint64_t overhead);

}  // namespace ghostrank
