// Random dithering as BytePS sends it (f5df52f, compressor/impl/dithering.cc): |x| / scale * top is
// rounded to a level next to it, at random so that the mean is right.
//
//   levels   linear: 0, 1, 2, ... q, top = q; natural: 0, 1, 2, 4, ... 2^(q-1), top = 2^(q-1)
//   scale    the largest magnitude, or the L2 norm
//
// Payload: for each element whose level is not 0 the distance from the one before (the first: from
// -1), a bit that is set for x < 0, and the level; distance and level in Elias' delta code. These
// bits fill words of 32, the first bit being the highest; then come the number of bits, modulo
// 2^32, and the scale, 4 bytes each. Draws are ghostrank's own: payloads have BytePS's form and, on
// average, its length. Error of an element: at most scale / q; natural: less than half the scale,
// or the scale where q = 1. A scale that is not finite makes every element NaN.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "collectives/compress/draws.h"
#include "collectives/compress/methods.h"
#include "collectives/compress/scaled_bytes.h"

namespace ghostrank {
namespace {

constexpr std::uint64_t kBits = 32;      // of a word, and of the largest number
constexpr std::uint32_t kMostZeros = 5;  // before the code of such a number

float scale_of(std::span<const float> tensor, const CompressionOptions& options) {
  if (!options.l2) return largest_magnitude(tensor);
  double sum = 0;
  for (const float x : tensor) sum += static_cast<double>(x) * static_cast<double>(x);
  return static_cast<float>(std::sqrt(sum));
}

std::uint32_t top_of(const CompressionOptions& options) {
  const std::uint32_t quantum = options.quantum;
  return options.natural ? std::uint32_t{1} << (quantum - 1) : quantum;
}

// x: at least 1. lower: the bits of x below its highest one.
struct EliasDelta {
  explicit EliasDelta(std::uint32_t x)
      : length(std::bit_width(x)),
        prefix(2 * static_cast<std::uint32_t>(std::bit_width(length)) - 1),
        lower(x & ~std::bit_floor(x)) {}
  std::uint32_t bits() const { return prefix + length - 1; }
  std::uint32_t length, prefix, lower;  // `length` is written in `prefix` bits
};

// Calls code(distance, negative, level) for each element whose level is not 0.
template <typename Code>
void for_each_level(std::span<const float> tensor, const CompressionOptions& options, float scale,
                    Code code) {
  if (!(scale > 0) || !std::isfinite(scale)) return;
  const std::uint32_t top = top_of(options);
  const double levels = static_cast<double>(top) / static_cast<double>(scale);
  std::uint64_t next = 0;  // after the last element with a level
  for (std::uint64_t i = 0; i < tensor.size(); ++i) {
    const double exact = std::abs(static_cast<double>(tensor[i])) * levels;
    const auto whole = static_cast<std::uint32_t>(exact);
    const std::uint32_t below = options.natural ? std::bit_floor(whole) : whole;
    const std::uint32_t gap = options.natural && below > 0 ? below : 1;
    const bool up = static_cast<double>(unit_draw(options.seed, i)) < (exact - below) / gap;
    const std::uint32_t level = std::min(top, up ? below + gap : below);
    if (level == 0) continue;
    code(static_cast<std::uint32_t>(i + 1 - next), std::signbit(tensor[i]), level);
    next = i + 1;
  }
}

std::uint64_t bytes_of_bits(std::uint64_t bits) { return 4 * ((bits + kBits - 1) / kBits) + 8; }

// The longest payload: all elements have the top level.
std::uint64_t size(std::uint64_t elements, const CompressionOptions& options) {
  return bytes_of_bits(elements * (EliasDelta(1).bits() + 1 + EliasDelta(top_of(options)).bits()));
}

std::uint64_t measure(std::span<const float> tensor, const CompressionOptions& options) {
  std::uint64_t bits = 0;
  for_each_level(tensor, options, scale_of(tensor, options),
                 [&](std::uint32_t distance, bool, std::uint32_t level) {
                   bits += EliasDelta(distance).bits() + 1 + EliasDelta(level).bits();
                 });
  return bytes_of_bits(bits);
}

class BitWriter {
 public:
  explicit BitWriter(std::byte* to) : to_(to) {}
  // Appends `value` as `count` bits, at most 32; it must have no higher ones.
  void put(std::uint32_t value, std::uint32_t count) {
    pending_ = pending_ << count | value;
    bits_ += count;
    held_ += count;
    if (held_ < kBits) return;
    held_ -= kBits;
    put_word(static_cast<std::uint32_t>(pending_ >> held_));
  }
  void put(const EliasDelta& code) {
    put(code.length, code.prefix);
    put(code.lower, code.length - 1);
  }
  // Ends the code; returns where it ends.
  std::byte* end() {
    if (held_ > 0) put_word(static_cast<std::uint32_t>(pending_ << (kBits - held_)));
    return to_;
  }
  std::uint64_t bits() const { return bits_; }

 private:
  void put_word(std::uint32_t word) {
    std::memcpy(to_, &word, 4);
    to_ += 4;
  }

  std::byte* to_;
  std::uint64_t pending_ = 0, held_ = 0, bits_ = 0;
};

// Reads `bits` bits, or those that the code has.
class BitReader {
 public:
  BitReader(std::span<const std::byte> code, std::uint64_t bits)
      : code_(code), bits_(std::min(bits, kBits * (code.size() / 4))) {}
  bool at_end() const { return read_ >= bits_; }
  bool get() {
    if (at_end()) {
      cut_ = true;
      return false;
    }
    std::uint32_t word;
    std::memcpy(&word, code_.data() + 4 * (read_ / kBits), 4);
    return (word >> (kBits - 1 - read_++ % kBits) & 1) != 0;
  }
  // 0 if the next bits are no number's.
  std::uint32_t get_delta() {
    std::uint32_t zeros = 0;
    while (zeros <= kMostZeros && !get()) ++zeros;
    if (zeros > kMostZeros) return 0;
    const std::uint32_t length = get_after_one(zeros);
    if (length > kBits) return 0;
    const std::uint32_t number = get_after_one(length - 1);
    return cut_ ? 0 : number;
  }

 private:
  // The number whose bits are a 1 and the next `count` bits.
  std::uint32_t get_after_one(std::uint32_t count) {
    std::uint32_t number = 1;
    for (std::uint32_t i = 0; i < count; ++i) number = number << 1 | (get() ? 1U : 0U);
    return number;
  }

  std::span<const std::byte> code_;
  std::uint64_t bits_, read_ = 0;
  bool cut_ = false;  // a bit was wanted beyond the last
};

void compress(std::span<const float> tensor, const CompressionOptions& options,
              std::byte* payload) {
  const float scale = scale_of(tensor, options);
  BitWriter code(payload);
  for_each_level(tensor, options, scale,
                 [&](std::uint32_t distance, bool negative, std::uint32_t level) {
                   code.put(EliasDelta(distance));
                   code.put(negative ? 1 : 0, 1);
                   code.put(EliasDelta(level));
                 });
  std::byte* end = code.end();
  const auto bits = static_cast<std::uint32_t>(code.bits());
  std::memcpy(end, &bits, 4);
  put_float(end, 1, scale);
}

// The largest number of bits, at most `room`, whose lowest 32 bits are these; `lowest` if none is.
std::uint64_t number_of_bits(std::uint64_t room, std::uint32_t lowest) {
  if (room < lowest) return lowest;
  return lowest + ((room - lowest) >> 32 << 32);
}

// Ends at what is no code, or is beyond the tensor.
void decompress(std::span<const std::byte> payload, const CompressionOptions& options,
                std::span<float> tensor) {
  std::fill(tensor.begin(), tensor.end(), 0.0f);
  if (payload.size() < 8) return;
  const std::size_t code = payload.size() - 8;
  std::uint32_t lowest_bits;
  std::memcpy(&lowest_bits, payload.data() + code, 4);
  const std::uint64_t bits = number_of_bits(kBits * (code / 4), lowest_bits);
  const float scale = get_float(payload.subspan(code), 1);
  if (!std::isfinite(scale))
    std::fill(tensor.begin(), tensor.end(), std::numeric_limits<float>::quiet_NaN());
  const auto top = static_cast<float>(top_of(options));
  std::uint64_t next = 0;
  for (BitReader reader(payload.first(code), bits); !reader.at_end();) {
    const std::uint32_t distance = reader.get_delta();
    const bool negative = reader.get();
    const std::uint32_t level = reader.get_delta();
    next += distance;
    if (distance == 0 || level == 0 || next > tensor.size()) return;
    const float magnitude = static_cast<float>(level) * scale / top;
    tensor[next - 1] = negative ? -magnitude : magnitude;
  }
}

double error(std::span<const float> tensor, const CompressionOptions& options) {
  const double apart = !options.natural ? 1.0 / options.quantum : options.quantum > 1 ? 0.5 : 1;
  return 1.00001 * apart * static_cast<double>(scale_of(tensor, options));
}

}  // namespace

const Compressor kDithering{.name = "dithering",
                            .cost = by_passes(2, 3),
                            .size = size,
                            .compress = compress,
                            .decompress = decompress,
                            .error = error,
                            .measure = measure,
                            .most_elements = kMostIndexed};

}  // namespace ghostrank
