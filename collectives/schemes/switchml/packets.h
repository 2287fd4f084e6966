// SwitchML's packets as notes, and as bytes (switch/wire/switchml.h describes bytes 0 to 9).
//
//   Note::tag    a Reach
//   Note::index  the pool index
//   Note::call   the low 8 bits of the call's number
//   Note::words  0-3 number of the packet, which switches echo | 4 exponent | 5 unused
//                | 6-7 worker that gives or takes the elements alone, unless everyone does
//
// Where one worker takes, a packet without a chunk's values, which only agrees on an exponent,
// names a worker, too, which gives and takes zeros: switches answer no round without elements.
//
// Packets are numbered on and on over the calls, modulo 2^32, alike by all workers.
//
// An all-reduce's packets are those of the published format. Those of other functions are ours: the
// type in the header's first byte is 2 (to one) or 3 (from one), the worker follows the exponents,
// and a packet whose elements the receiver does not need has none (size 7): it is a credit.
//
// Threading: pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "collectives/schemes/shared/rails.h"
#include "collectives/wire_format.h"
#include "switch/wire/udp.h"

namespace ghostrank::switchml {

inline constexpr std::uint64_t kOverhead = 4;  // bytes of the header that are not in `words`
inline constexpr std::uint16_t kSetBit = 1u << 15;
inline constexpr int kNoWorker = 0xffff;

inline constexpr std::uint64_t head_bytes(Reach reach) {  // overhead and words
  return reach == Reach::everyone ? 10 : 12;
}

struct Words {
  std::uint32_t packet = 0;
  std::int8_t exponent = 0;
  int worker = kNoWorker;

  // As the words of a note.
  class Bytes {
   public:
    operator std::span<const std::byte>() const { return std::span(all_).first(size_); }

   private:
    friend Words;
    std::array<std::byte, head_bytes(Reach::to_one) - kOverhead> all_{};
    std::size_t size_ = 0;
  };
  Bytes bytes(Reach reach) const {
    Bytes bytes;
    bytes.size_ = head_bytes(reach) - kOverhead;
    store32(bytes.all_.data(), packet);
    bytes.all_[4] = static_cast<std::byte>(exponent);
    if (reach != Reach::everyone)
      store16(bytes.all_.data() + kAlone, static_cast<std::uint16_t>(worker));
    return bytes;
  }
  // Empty: not of this form.
  static std::optional<Words> read(Reach reach, std::span<const std::byte> bytes) {
    if (bytes.size() != head_bytes(reach) - kOverhead) return std::nullopt;
    return Words{load32(bytes.data()), std::to_integer<std::int8_t>(bytes[4]),
                 reach == Reach::everyone ? kNoWorker : load16(bytes.data() + kAlone)};
  }

 private:
  static constexpr std::size_t kAlone = 6;  // offset of the worker, in bytes
};

const WireFormat& packets();

}  // namespace ghostrank::switchml
