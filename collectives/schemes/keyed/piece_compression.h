// Compression between the roots of nodes and the servers, as BytePS has it: each piece of a tensor
// is compressed by itself, and so is its sum.
//
//   root    t = piece + what it kept      push c(t)                        d(result)
//   server                                s = sum of d(push) + what it kept      result c(s)
//
// Each end keeps error feedback for each key (compress/memory.h): t - d(c(t)). A server adds nodes
// in their order, whatever the order in which they push, so that results are equal bit by bit to a
// reference.
//
// Where the data decide the length of a payload, a note has the length of its payload if ranks hold
// real data, and the mean length, at least one element, if they hold none. A payload of real data
// may have no elements: it stands for zeros.
//
// Units: elements of float32; picoseconds. Threading: a codec has one owner, the rest is immutable.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "collectives/agent.h"
#include "collectives/compress/memory.h"
#include "collectives/compressor.h"

namespace ghostrank {

// How long an end takes for a number of elements, its memory included; decompress: of one payload.
struct CodecTime {
  Picoseconds compress = 0, decompress = 0;
};

// Elements of the payload of a node's piece, and of the sum of all nodes' pieces.
struct PayloadSizes {
  std::uint64_t piece = 0, sum = 0;
};

struct PieceCompression {
  const Compressor* method = nullptr;
  CompressionOptions options;
  Memory memory = Memory::none;                             // of roots; none, residual or nesterov
  std::uint64_t min_bytes = 0;                              // smaller tensors travel as they are
  std::function<CodecTime(std::uint64_t elements)> time{};  // of roots and servers
  // The mean sizes of payloads, where the data decide (Compressor::measure). Threading: any.
  std::function<PayloadSizes(std::uint64_t elements)> expected{};

  // Servers keep errors, too, but no momentum: the pushes that they sum contain it.
  Memory server_memory() const { return memory == Memory::none ? memory : Memory::residual; }
  // Payloads of pieces whose data nobody holds.
  PayloadSizes payloads(std::uint64_t elements) const {
    if (method->measure) {
      const PayloadSizes mean = expected(elements);
      return {std::max<std::uint64_t>(1, mean.piece), std::max<std::uint64_t>(1, mean.sum)};
    }
    const std::uint64_t size = method->size(elements, options);
    return {size, size};
  }
};

// Whether a note of a compressed piece or sum holds its payload, that is, ranks hold real data.
inline bool holds_payload(const Note& note) { return !note.content.empty() || note.elements == 0; }

// Compresses the values of one key at one end, round after round.
class PieceCodec {
 public:
  // `end`: its number, which its random draws depend on.
  PieceCodec(const PieceCompression& how, Memory memory, std::uint32_t key, GroupParty end,
             std::uint64_t elements)
      : how_(how), key_(key), end_(end), memory_(memory, elements) {}

  // The payload of the next round's values, which have as many elements as the piece.
  std::vector<std::byte> compress(std::vector<float> values) {
    memory_.compensate(0, values);
    std::vector<std::byte> payload = payload_of(*how_.method, values, options(round_));
    memory_.keep(0, values, decompressed(how_, key_, round_, payload, values.size()));
    ++round_;
    return payload;
  }

  // The elements of a payload of any end. `round`: of the key, from 0.
  static std::vector<float> decompressed(const PieceCompression& how, std::uint32_t key,
                                         std::uint64_t round, std::span<const std::byte> payload,
                                         std::uint64_t elements);

 private:
  CompressionOptions options(std::uint64_t round) const;

  const PieceCompression& how_;
  std::uint32_t key_;
  GroupParty end_;
  GradientMemory memory_;
  std::uint64_t round_ = 0;
};

}  // namespace ghostrank
