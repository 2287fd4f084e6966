#include "emulator/verify/values.h"

#include "collectives/common/kernel.h"

namespace ghostrank {
namespace {

constexpr std::size_t kStarts = 8192;  // offsets where a tile may start; the table fits the cache
using Table = std::array<std::uint16_t, kStarts + kTileElements>;

constexpr std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  return x * 0x94d049bb133111ebULL >> 32;
}

constexpr Table make_table() {
  Table table{};
  std::uint64_t i = 0;
  for (std::uint16_t& entry : table)
    entry = static_cast<std::uint16_t>(mix(++i * 0x9e3779b97f4a7c15ULL));
  return table;
}
constexpr Table kTable = make_table();

const std::uint16_t* random_row(std::uint64_t seed, std::uint64_t index) {
  const std::uint64_t tile = index / kTileElements;
  return kTable.data() + mix(tile * 0x9e3779b97f4a7c15ULL + seed) % kStarts + index % kTileElements;
}

// Draws from 0 .. bound - 1. Both factors have 16 bits, because processors have an instruction for
// the upper half of such a product.
void draw(std::uint64_t seed, std::uint64_t index, std::uint64_t count, std::uint16_t bound,
          Value* out) {
  const std::uint16_t* random = random_row(seed, index);
  for (std::uint64_t i = 0; i < count; ++i)
    out[i] = static_cast<Value>(static_cast<std::uint32_t>(random[i]) * bound >> 16);
}

// With more than kLargestValue ranks, one rank in this many has a 1 at an element, the others 0.
std::uint16_t every_of(int size) {
  return static_cast<std::uint16_t>((static_cast<std::uint32_t>(size) + kLargestValue - 1) /
                                    kLargestValue);
}

}  // namespace

GHOSTRANK_KERNEL void own_values(GroupRank rank, int size, std::uint64_t salt, std::uint64_t index,
                                 std::uint64_t count, Value* out) {
  const std::uint32_t r = rank;
  if (size <= kLargestValue)
    return draw(r * 0xd1b54a32d192ed03ULL + salt, index, count,
                static_cast<std::uint16_t>(kLargestValue / size + 1), out);
  draw(salt, index, count, every_of(size), out);
  const auto turn = static_cast<Value>(r % every_of(size));
  for (std::uint64_t i = 0; i < count; ++i) out[i] = out[i] == turn ? 1 : 0;
}

GHOSTRANK_KERNEL void sum_values(std::uint64_t salt, std::uint64_t index, std::uint64_t count,
                                 Value* out) {
  draw(~salt, index, count, kLargestValue + 1, out);
}

GHOSTRANK_KERNEL void contributed_values(GroupRank rank, int size, std::uint64_t salt,
                                         std::uint64_t index, std::uint64_t count, Value* out) {
  if (rank < size - 1) return own_values(rank, size, salt, index, count, out);
  sum_values(salt, index, count, out);
  ValueTile theirs;
  if (size <= kLargestValue) {
    for (GroupRank r = 0; r < rank; ++r) {
      own_values(r, size, salt, index, count, theirs.data());
      for (std::uint64_t i = 0; i < count; ++i) out[i] = static_cast<Value>(out[i] - theirs[i]);
    }
    return;
  }
  const std::uint16_t every = every_of(size);
  const std::uint32_t others = rank;
  draw(salt, index, count, every, theirs.data());
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint32_t turn = theirs[i];
    out[i] = static_cast<Value>(out[i] - (others / every + (turn < others % every ? 1 : 0)));
  }
}

}  // namespace ghostrank
