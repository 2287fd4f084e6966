// The content of the tensors that a collective sums, if a job states how much of them is zero: a
// pure function of (key, rank, block). Any block can be computed by itself, so a bitmap costs no
// memory, and a run without real data knows as well which rank has which nonzero blocks.
//
//   overlap   random              all                 none
//   rank 0    # . . # . . # .     # . . # . . # .     # . . # . . . .
//   rank 1    . # . # . . . #     # . . # . . # .     . # . . . # . .
//   rank 2    # . . . # # . .     # . . # . . # .     . . # . . . # .
//
// Densities are exact. With `random` and `all`, each rank has round(density * B) nonzero blocks out
// of B; with `none`, rank r has the blocks round(r * density * B) up to round((r+1) * density * B)
// of a random order. `random`: every rank draws its own order; `all` and `none`: all ranks share
// one.
//
// `measured`: a share m[k] of the blocks is nonzero on exactly k ranks; each block draws which
// ranks. A TensorLayout says where a tensor differs: parts with a Sparsity of their own, and
// embedding tables: a row is nonzero on a rank that has drawn its id, and a block that has such a
// row is nonzero. Parts of few blocks are exact on average over iterations, not in each.
//
// Values are small integers whose sums over all ranks are at most kLargestSum, so that every sum is
// exact in every data type and in any order. In a nonzero block, every element is at least 1 if
// there are at most kLargestSum ranks; with more ranks, element i of rank r is 1 if e = ceil(ranks
// / kLargestSum) divides i + r, else 0.
//
// Units: elements; the last block may be shorter. Threading: immutable. Cost: about 30 ns per rank
// and block, 0.25 ns per element.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/common/dice.h"
#include "collectives/schedule.h"

namespace ghostrank {

enum class Overlap : std::uint8_t { random, all, none, measured };
std::string_view name_of(Overlap overlap);

// Mean shares of blocks that are nonzero: on a rank, and on at least one of all ranks.
struct MeanDensities {
  double density = 0, union_density = 0;
};

struct UnevenTensor;

// A job's statement about its tensors.
struct Sparsity {
  double density = 1;         // share of nonzero blocks
  std::uint64_t block = 256;  // elements per block
  Overlap overlap = Overlap::random;
  // For `measured`: by k, the share of blocks that are nonzero on exactly k ranks. They sum to 1,
  // and `density` follows from them.
  std::shared_ptr<const std::vector<double>> measured{};
  // Means of a tensor whose parts differ; null: they are alike. Not a statement of a job.
  std::shared_ptr<const UnevenTensor> uneven{};
  bool operator==(const Sparsity&) const = default;

  // Shares for `measured` with these two means; union_density must lie between density and min(1,
  // ranks * density).
  static Sparsity of_means(double density, double union_density, int ranks, std::uint64_t block);

  // Mean share of blocks that are nonzero on at least one of `ranks` ranks.
  double union_density(int ranks) const;
  // The mean densities of the blocks that hold the elements [first, end).
  MeanDensities means(std::uint64_t first, std::uint64_t end, int ranks) const;
  // Why `ranks` ranks cannot hold such tensors; empty: they can.
  std::string refuses(int ranks) const;
};

// An embedding table in a tensor. In an iteration every rank looks up `ids` ids, drawn from Zipf's
// law: the row k, from 0, with a probability proportional to (k + 1)^-exponent. So a row is nonzero
// on a rank with the probability 1 - (1 - p)^ids, for each row and rank independently.
struct ZipfTable {
  std::uint64_t first = 0;            // the tensor's element at which the table begins
  std::uint64_t rows = 0, width = 0;  // width: elements of a row
  double exponent = 1;
  double ids = 0;
  double weight = 0;  // 1 over the sum of all (k + 1)^-exponent; see zipf_weight()

  double probability(std::uint64_t row) const;  // that a rank has drawn the row
};
double zipf_weight(std::uint64_t rows, double exponent);

// A stretch of a tensor that is as sparse as its own Sparsity says: the blocks that begin in it,
// which have the size of the tensor's.
struct TensorPart {
  std::uint64_t first = 0, end = 0;  // elements
  Sparsity sparsity;
};

// The stretches of a tensor that differ, in order. Elements in none follow the tensor's Sparsity; a
// block that a table covers in part is also nonzero if the Sparsity around the table draws it.
struct TensorLayout {
  std::vector<ZipfTable> tables;
  std::vector<TensorPart> parts;

  // The mean densities of the blocks [first, end) of a tensor, whose last one may be shorter.
  MeanDensities means(const Sparsity& between, int ranks, std::uint64_t first,
                      std::uint64_t end) const;
};

// A tensor with a layout, and how sparse it is elsewhere.
struct UnevenTensor {
  TensorLayout layout;
  Sparsity between;
};

class TensorContent {
 public:
  static constexpr std::int16_t kLargestSum = 250;

  // A tensor of `elements` elements on each of `ranks` ranks; without a layout it is all alike.
  TensorContent(const Sparsity& sparsity, std::uint64_t key, int ranks, std::uint64_t elements,
                std::shared_ptr<const TensorLayout> layout = nullptr);

  const Sparsity& sparsity() const { return sparsity_; }
  int ranks() const { return ranks_; }
  std::uint64_t elements() const { return elements_; }
  std::uint64_t blocks() const { return blocks_; }

  bool nonzero(GroupRank rank, std::uint64_t block) const;
  // True if any of these elements lies in a nonzero block.
  bool nonzero(GroupRank rank, std::uint64_t first, std::uint64_t elements) const;
  // Number of elements in nonzero blocks.
  std::uint64_t nonzero_elements(GroupRank rank) const;

  // The elements [first, first + count) of one rank, and their sums over all ranks; writes `count`
  // numbers to `out`.
  void values(GroupRank rank, std::uint64_t first, std::uint64_t count, std::int16_t* out) const;
  void sums(std::uint64_t first, std::uint64_t count, std::int16_t* out) const;

 private:
  // Blocks that draw from one order: a part's, or all of the tensor's.
  struct Region {
    Region(std::uint64_t key, std::uint64_t first, std::uint64_t blocks);
    std::uint64_t key, first, blocks;
    std::uint64_t mask;  // p - 1, where p is the least power of two >= max(2, blocks)
    int shift;
    double up = 0.5;  // added to a count of blocks before it is rounded down

    std::uint64_t rounded(double count) const;
    std::uint64_t position(std::uint64_t order, std::uint64_t block) const;
  };
  // The rank's nonzero blocks: the blocks at [first, end) of the region's random order.
  struct Share {
    std::uint64_t first = 0, end = 0;
  };
  static Share share(const Region& region, const Sparsity& sparsity, GroupRank rank);
  bool drawn(GroupRank rank, std::uint64_t block) const;  // as the sparsity says, without tables
  bool drawn(const Region& in, const Sparsity& as, GroupRank rank, std::uint64_t block) const;
  bool measured(const Region& in, const Sparsity& as, GroupRank rank, std::uint64_t block) const;
  bool looked_up(GroupRank rank, std::uint64_t block) const;
  void add_block(GroupRank rank, std::uint64_t block, std::uint64_t first, std::uint64_t count,
                 std::int16_t* out) const;

  Sparsity sparsity_;
  std::uint64_t key_;
  int ranks_;
  std::uint64_t elements_, blocks_;
  Region whole_;
  std::shared_ptr<const TensorLayout> layout_;  // null: all alike
  std::vector<Region> parts_;                   // of the layout's
};

// The key of a tensor in one iteration of a communicator.
std::uint64_t tensor_key(std::uint64_t seed, std::uint32_t communicator, std::uint32_t tensor,
                         std::uint32_t iteration);

// The seed of one rank's draws for a tensor.
constexpr std::uint64_t rank_seed(std::uint64_t key, GroupRank rank) {
  return checking::mix(key ^ (static_cast<std::uint64_t>(rank) + 1) * 0x9e3779b97f4a7c15ULL);
}

}  // namespace ghostrank
