// See tensor_content.h.
#include "collectives/tensor_content.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>

#include "collectives/dice.h"
#include "collectives/kernel.h"

namespace ghostrank {
namespace {

using checking::mix;

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ULL;
constexpr int kRounds = 4;

std::uint64_t rounded(double blocks, std::uint64_t most) {
  return std::min(static_cast<std::uint64_t>(std::llround(blocks)), most);
}

}  // namespace

std::string_view name_of(Overlap overlap) {
  constexpr std::string_view kNames[]{"random", "all", "none"};
  return kNames[static_cast<std::size_t>(overlap)];
}

double Sparsity::union_density(int ranks) const {
  switch (overlap) {
    case Overlap::random:
      return 1 - std::pow(1 - density, ranks);
    case Overlap::none:
      return std::min(1.0, ranks * density);
    case Overlap::all:
      break;
  }
  return density;
}

std::string Sparsity::refuses(int ranks) const {
  if (overlap != Overlap::none || ranks * density <= 1 + 1e-9) return {};
  char most[32];
  std::snprintf(most, sizeof most, "%.4g", std::floor(1e4 / ranks) / 1e4);
  return "the blocks of " + std::to_string(ranks) +
         " ranks do not all differ; set tensors.density to at most " + most +
         ", or tensors.overlap to random or all";
}

TensorContent::TensorContent(const Sparsity& sparsity, std::uint64_t key, int ranks,
                             std::uint64_t elements)
    : sparsity_(sparsity),
      key_(key),
      ranks_(ranks),
      elements_(elements),
      blocks_((elements + sparsity.block - 1) / sparsity.block),
      mask_(std::bit_ceil(std::max<std::uint64_t>(2, blocks_)) - 1),
      shift_(std::max(1, static_cast<int>(std::bit_width(mask_)) / 2)) {}

TensorContent::Share TensorContent::share(GroupRank rank) const {
  const double each = sparsity_.density * static_cast<double>(blocks_);
  if (sparsity_.overlap != Overlap::none) return {0, rounded(each, blocks_)};
  return {rounded(rank * each, blocks_), rounded((rank + 1) * each, blocks_)};
}

std::uint64_t TensorContent::order_of(GroupRank rank) const {
  const bool own = sparsity_.overlap == Overlap::random;
  return mix(key_ + (own ? static_cast<std::uint64_t>(rank) + 1 : 0) * kGolden);
}

// The index of a block in a random order of all blocks. Each pass permutes the numbers 0 .. mask_;
// a result that is no block is permuted again until it is one (cycle walking).
std::uint64_t TensorContent::shuffled_index(std::uint64_t key, std::uint64_t block) const {
  do {
    std::uint64_t drawn = key;
    for (int round = 0; round < kRounds; ++round) {
      drawn = mix(drawn + kGolden);
      block = (block + drawn) & mask_;
      block = (block * ((drawn >> 31) | 1)) & mask_;
      block ^= block >> shift_;
    }
  } while (block >= blocks_);
  return block;
}

bool TensorContent::nonzero(GroupRank rank, std::uint64_t block) const {
  const Share mine = share(rank);
  if (mine.first == mine.end) return false;
  if (mine.end - mine.first == blocks_) return true;
  const std::uint64_t at = shuffled_index(order_of(rank), block);
  return at >= mine.first && at < mine.end;
}

bool TensorContent::nonzero(GroupRank rank, std::uint64_t first, std::uint64_t elements) const {
  if (elements == 0) return false;
  const std::uint64_t last = (first + elements - 1) / sparsity_.block;
  for (std::uint64_t block = first / sparsity_.block; block <= last; ++block)
    if (nonzero(rank, block)) return true;
  return false;
}

std::uint64_t TensorContent::nonzero_elements(GroupRank rank) const {
  const Share mine = share(rank);
  const std::uint64_t full = (mine.end - mine.first) * sparsity_.block;
  const std::uint64_t missing = blocks_ * sparsity_.block - elements_;  // of the last block
  return missing > 0 && nonzero(rank, blocks_ - 1) ? full - missing : full;
}

// Adds the rank's elements [first, first + count), all in one block, to `out`.
GHOSTRANK_KERNEL void TensorContent::add_block(GroupRank rank, std::uint64_t block,
                                               std::uint64_t first, std::uint64_t count,
                                               std::int16_t* out) const {
  if (ranks_ > kLargestSum) {
    const auto every = static_cast<std::uint64_t>((ranks_ + kLargestSum - 1) / kLargestSum);
    std::uint64_t turn = (first + static_cast<std::uint64_t>(rank)) % every;
    for (std::uint64_t i = 0; i < count; ++i) {
      out[i] = static_cast<std::int16_t>(out[i] + (turn == 0 ? 1 : 0));
      turn = turn + 1 == every ? 0 : turn + 1;
    }
    return;
  }
  const auto most = static_cast<std::uint32_t>(kLargestSum / ranks_);
  const auto seed = static_cast<std::uint32_t>(
      mix(key_ ^ mix(block * kGolden + static_cast<std::uint64_t>(rank))));
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint32_t bits = static_cast<std::uint32_t>(first + i) * 0x9e3779b1U + seed;
    bits ^= bits >> 16;
    bits *= 0x85ebca6bU;
    bits ^= bits >> 13;
    bits *= 0xc2b2ae35U;
    out[i] = static_cast<std::int16_t>(out[i] + 1 +
                                       static_cast<std::int32_t>((bits >> 16) * most >> 16));
  }
}

void TensorContent::values(GroupRank rank, std::uint64_t first, std::uint64_t count,
                           std::int16_t* out) const {
  std::fill_n(out, count, std::int16_t{0});
  for (const std::uint64_t end = first + count; first < end;) {
    const std::uint64_t block = first / sparsity_.block;
    const std::uint64_t n = std::min(end, (block + 1) * sparsity_.block) - first;
    if (nonzero(rank, block)) add_block(rank, block, first, n, out);
    first += n;
    out += n;
  }
}

void TensorContent::sums(std::uint64_t first, std::uint64_t count, std::int16_t* out) const {
  std::fill_n(out, count, std::int16_t{0});
  for (const std::uint64_t end = first + count; first < end;) {
    const std::uint64_t block = first / sparsity_.block;
    const std::uint64_t n = std::min(end, (block + 1) * sparsity_.block) - first;
    for (GroupRank rank = 0; rank < ranks_; ++rank)
      if (nonzero(rank, block)) add_block(rank, block, first, n, out);
    first += n;
    out += n;
  }
}

std::uint64_t tensor_key(std::uint64_t seed, std::uint32_t communicator, std::uint32_t tensor,
                         std::uint32_t iteration) {
  const std::uint64_t which = std::uint64_t{communicator} << 32 | tensor;
  return mix(mix(mix(seed + kGolden) + which) + (std::uint64_t{iteration} + 1) * kGolden);
}

}  // namespace ghostrank
