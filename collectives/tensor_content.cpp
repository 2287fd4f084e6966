// See tensor_content.h.
#include "collectives/tensor_content.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <utility>

#include "collectives/common/dice.h"
#include "collectives/common/kernel.h"

namespace ghostrank {
namespace {

using checking::mix;

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ULL;
constexpr int kRounds = 4;

// The least mask of the form 2^i - 1 for `count` indices.
std::uint64_t mask_for(std::uint64_t count) {
  return std::bit_ceil(std::max<std::uint64_t>(2, count)) - 1;
}
int shift_for(std::uint64_t mask) {
  return std::max(1, static_cast<int>(std::bit_width(mask)) / 2);
}

// The position of an index in a random order of 0 .. count-1. Each pass permutes the numbers 0 ..
// mask; a result that is too large is permuted again until it is not (cycle walking).
std::uint64_t shuffled_index(std::uint64_t key, std::uint64_t index, std::uint64_t count,
                             std::uint64_t mask, int shift) {
  do {
    std::uint64_t drawn = key;
    for (int round = 0; round < kRounds; ++round) {
      drawn = mix(drawn + kGolden);
      index = (index + drawn) & mask;
      index = (index * ((drawn >> 31) | 1)) & mask;
      index ^= index >> shift;
    }
  } while (index >= count);
  return index;
}

}  // namespace

std::string_view name_of(Overlap overlap) {
  constexpr std::string_view kNames[]{"random", "all", "none", "measured"};
  return kNames[static_cast<std::size_t>(overlap)];
}

double Sparsity::union_density(int ranks) const {
  switch (overlap) {
    case Overlap::random:
      return 1 - std::pow(1 - density, ranks);
    case Overlap::none:
      return std::min(1.0, ranks * density);
    case Overlap::measured:
      return 1 - measured->front();
    case Overlap::all:
      break;
  }
  return density;
}

MeanDensities Sparsity::means(std::uint64_t first, std::uint64_t end, int ranks) const {
  if (!uneven) return {density, union_density(ranks)};
  return uneven->layout.means(uneven->between, ranks, first / block, (end + block - 1) / block);
}

Sparsity Sparsity::of_means(double density, double union_density, int ranks, std::uint64_t block) {
  // Every block is nonzero on all ranks, on one or on none, so the two means fix the shares.
  std::vector<double> shares(static_cast<std::size_t>(ranks) + 1);
  const double one = ranks > 1 ? (union_density - density) * ranks / (ranks - 1) : 0;
  shares[1] = one;
  shares.back() = union_density - one;
  shares.front() = 1 - union_density;
  return {density, block, Overlap::measured,
          std::make_shared<const std::vector<double>>(std::move(shares))};
}

std::string Sparsity::refuses(int ranks) const {
  if (overlap == Overlap::measured && static_cast<int>(measured->size()) != ranks + 1)
    return "the overlap was measured on " + std::to_string(measured->size() - 1) +
           " ranks, and the group has " + std::to_string(ranks);
  if (overlap != Overlap::none || ranks * density <= 1 + 1e-9) return {};
  char most[32];
  std::snprintf(most, sizeof most, "%.4g", std::floor(1e4 / ranks) / 1e4);
  return "the blocks of " + std::to_string(ranks) +
         " ranks do not all differ; set tensors.density to at most " + most +
         ", or tensors.overlap to random or all";
}

TensorContent::Region::Region(std::uint64_t of_key, std::uint64_t first_block, std::uint64_t count)
    : key(of_key),
      first(first_block),
      blocks(count),
      mask(mask_for(count)),
      shift(shift_for(mask)) {}

std::uint64_t TensorContent::Region::rounded(double count) const {
  return std::min(static_cast<std::uint64_t>(count + up), blocks);
}

std::uint64_t TensorContent::Region::position(std::uint64_t order, std::uint64_t block) const {
  return shuffled_index(order, block - first, blocks, mask, shift);
}

TensorContent::TensorContent(const Sparsity& sparsity, std::uint64_t key, int ranks,
                             std::uint64_t elements, std::shared_ptr<const TensorLayout> layout)
    : sparsity_(sparsity),
      key_(key),
      ranks_(ranks),
      elements_(elements),
      blocks_((elements + sparsity.block - 1) / sparsity.block),
      whole_(key, 0, blocks_),
      layout_(std::move(layout)) {
  if (!layout_) return;
  for (const TensorPart& part : layout_->parts) {
    const std::uint64_t first = (part.first + sparsity.block - 1) / sparsity.block,
                        end = (part.end + sparsity.block - 1) / sparsity.block;
    const std::uint64_t own = mix(key + (parts_.size() + 1) * kGolden);
    parts_.emplace_back(own, first, end - first).up = static_cast<double>(own >> 11) * 0x1p-53;
  }
}

TensorContent::Share TensorContent::share(const Region& region, const Sparsity& sparsity,
                                          GroupRank rank) {
  const double each = sparsity.density * static_cast<double>(region.blocks);
  if (sparsity.overlap != Overlap::none) return {0, region.rounded(each)};
  return {region.rounded(rank * each), region.rounded((rank + 1) * each)};
}

bool TensorContent::nonzero(GroupRank rank, std::uint64_t block) const {
  return layout_ ? looked_up(rank, block) : drawn(whole_, sparsity_, rank, block);
}

bool TensorContent::drawn(GroupRank rank, std::uint64_t block) const {
  const auto behind =
      std::upper_bound(parts_.begin(), parts_.end(), block,
                       [](std::uint64_t at, const Region& part) { return at < part.first; });
  if (behind != parts_.begin()) {
    const auto part = behind - 1;
    if (block - part->first < part->blocks)
      return drawn(*part, layout_->parts[part - parts_.begin()].sparsity, rank, block);
  }
  return drawn(whole_, sparsity_, rank, block);
}

bool TensorContent::drawn(const Region& in, const Sparsity& as, GroupRank rank,
                          std::uint64_t block) const {
  if (as.overlap == Overlap::measured) return measured(in, as, rank, block);
  const Share mine = share(in, as, rank);
  if (mine.first == mine.end) return false;
  if (mine.end - mine.first == in.blocks) return true;
  const bool own = as.overlap == Overlap::random;
  const std::uint64_t order =
      mix(in.key + (own ? static_cast<std::uint64_t>(rank) + 1 : 0) * kGolden);
  const std::uint64_t at = in.position(order, block);
  return at >= mine.first && at < mine.end;
}

// The blocks at the first positions of a random order are nonzero on all ranks, those behind them
// on all but one, and so on; for every block, a random order of the ranks says on which.
bool TensorContent::measured(const Region& in, const Sparsity& as, GroupRank rank,
                             std::uint64_t block) const {
  const std::uint64_t position = in.position(mix(in.key), block);
  const auto& shares = *as.measured;
  double so_far = 0;
  std::size_t k = shares.size() - 1;
  for (; k > 0; --k) {
    so_far += shares[k];
    if (position < in.rounded(so_far * static_cast<double>(in.blocks))) break;
  }
  if (k == 0 || k + 1 == shares.size()) return k > 0;
  const std::uint64_t ranks = ranks_;
  const std::uint64_t mask = mask_for(ranks);
  const std::uint64_t turn =
      shuffled_index(mix(in.key ^ mix(block + kGolden)), static_cast<std::uint64_t>(rank), ranks,
                     mask, shift_for(mask));
  return turn < k;
}

// True if the rank looked up a row of the block, or the block is partly outside tables and drawn.
bool TensorContent::looked_up(GroupRank rank, std::uint64_t block) const {
  std::uint64_t at = block * sparsity_.block;
  const std::uint64_t end = std::min(at + sparsity_.block, elements_);
  for (std::size_t t = 0; t < layout_->tables.size() && at < end; ++t) {
    const ZipfTable& table = layout_->tables[t];
    const std::uint64_t table_end = table.first + table.rows * table.width;
    if (table_end <= at) continue;
    if (at < table.first) {
      if (drawn(rank, block)) return true;
      at = table.first;
      if (at >= end) break;
    }
    const std::uint64_t last = (std::min(end, table_end) - 1 - table.first) / table.width;
    for (std::uint64_t row = (at - table.first) / table.width; row <= last; ++row) {
      const std::uint64_t bits =
          mix(mix(key_ + (static_cast<std::uint64_t>(rank) + 1) * kGolden) + t * kGolden + row);
      if (static_cast<double>(bits >> 11) * 0x1p-53 < table.probability(row)) return true;
    }
    at = table_end;
  }
  return at < end && drawn(rank, block);
}

bool TensorContent::nonzero(GroupRank rank, std::uint64_t first, std::uint64_t elements) const {
  if (elements == 0) return false;
  const std::uint64_t last = (first + elements - 1) / sparsity_.block;
  for (std::uint64_t block = first / sparsity_.block; block <= last; ++block)
    if (nonzero(rank, block)) return true;
  return false;
}

std::uint64_t TensorContent::nonzero_elements(GroupRank rank) const {
  if (layout_ || sparsity_.overlap == Overlap::measured) {
    std::uint64_t sum = 0;
    for (std::uint64_t block = 0; block < blocks_; ++block)
      if (nonzero(rank, block))
        sum += std::min(sparsity_.block, elements_ - block * sparsity_.block);
    return sum;
  }
  const Share mine = share(whole_, sparsity_, rank);
  const std::uint64_t full = (mine.end - mine.first) * sparsity_.block;
  const std::uint64_t missing = blocks_ * sparsity_.block - elements_;  // of the last block
  return missing > 0 && nonzero(rank, blocks_ - 1) ? full - missing : full;
}

// Adds the rank's elements [first, first + count), all in one block, to `out`.
GHOSTRANK_KERNEL void TensorContent::add_block(GroupRank rank, std::uint64_t block,
                                               std::uint64_t first, std::uint64_t count,
                                               std::int16_t* out) const {
  if (ranks_ > kLargestSum) {
    const std::uint64_t every = (ranks_ + kLargestSum - 1) / kLargestSum;
    std::uint64_t turn = (first + rank) % every;
    for (std::uint64_t i = 0; i < count; ++i) {
      out[i] = static_cast<std::int16_t>(out[i] + (turn == 0 ? 1 : 0));
      turn = turn + 1 == every ? 0 : turn + 1;
    }
    return;
  }
  const std::uint32_t most = kLargestSum / ranks_;
  const auto seed = static_cast<std::uint32_t>(mix(key_ ^ mix(block * kGolden + rank)));
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

double ZipfTable::probability(std::uint64_t row) const {
  const double p = weight * std::pow(static_cast<double>(row + 1), -exponent);
  return p >= 1 ? 1 : -std::expm1(ids * std::log1p(-p));
}

// The first terms one by one, the others by Euler and Maclaurin's formula.
double zipf_weight(std::uint64_t rows, double exponent) {
  constexpr std::uint64_t kExact = 1000;
  const auto term = [&](double k) { return std::pow(k, -exponent); };
  double sum = 0;
  for (std::uint64_t k = 1; k <= std::min(rows, kExact); ++k) sum += term(static_cast<double>(k));
  if (rows > kExact) {
    const auto a = static_cast<double>(kExact), b = static_cast<double>(rows);
    sum += std::abs(exponent - 1) < 1e-9
               ? std::log(b / a)
               : (std::pow(b, 1 - exponent) - std::pow(a, 1 - exponent)) / (1 - exponent);
    sum += (term(b) - term(a)) / 2;
  }
  return 1 / sum;
}

MeanDensities TensorLayout::means(const Sparsity& between, int ranks, std::uint64_t first,
                                  std::uint64_t end) const {
  if (end <= first) return {};
  // Sums the probabilities of blocks. Far into a long table, one block stands for its neighbours,
  // whose probabilities differ little.
  constexpr std::uint64_t kEvery = 4096;
  const std::uint64_t block = between.block;
  double rank_sum = 0, union_sum = 0, in_tables = 0;
  for (const ZipfTable& table : tables) {
    const std::uint64_t table_first = table.first / block;
    const std::uint64_t table_end =
        std::min(end, (table.first + table.rows * table.width + block - 1) / block);
    const std::uint64_t from = std::max(first, table_first);
    if (from >= table_end) continue;
    for (std::uint64_t b = from, step = 1; b < table_end; b += step) {
      step = std::min(table_end - b, 1 + (b - table_first) / kEvery);
      const std::uint64_t middle = (b + step / 2) * block;
      const std::uint64_t row = (std::max(middle, table.first) - table.first) / table.width;
      const std::uint64_t last =
          std::min((middle + block - 1 - table.first) / table.width, table.rows - 1);
      double none = 1;
      for (std::uint64_t r = row; r <= last; ++r) none *= 1 - table.probability(r);
      rank_sum += static_cast<double>(step) * (1 - none);
      union_sum += static_cast<double>(step) * (1 - std::pow(none, ranks));
    }
    in_tables += static_cast<double>(table_end - from);
  }
  double in_parts = 0, part_sum = 0, part_union = 0;
  for (const TensorPart& part : parts) {
    const std::uint64_t from = std::max(first, (part.first + block - 1) / block),
                        to = std::min(end, (part.end + block - 1) / block);
    if (from >= to) continue;
    const auto blocks = static_cast<double>(to - from);
    in_parts += blocks;
    part_sum += blocks * part.sparsity.density;
    part_union += blocks * part.sparsity.union_density(ranks);
  }
  const auto all = static_cast<double>(end - first);
  const double others = std::max(0.0, all - in_tables - in_parts),
               sum = std::max(all, in_tables + in_parts);
  return {(rank_sum + part_sum + others * between.density) / sum,
          (union_sum + part_union + others * between.union_density(ranks)) / sum};
}

std::uint64_t tensor_key(std::uint64_t seed, std::uint32_t communicator, std::uint32_t tensor,
                         std::uint32_t iteration) {
  const std::uint64_t which = std::uint64_t{communicator} << 32 | tensor;
  return mix(mix(mix(seed + kGolden) + which) + (std::uint64_t{iteration} + 1) * kGolden);
}

}  // namespace ghostrank
