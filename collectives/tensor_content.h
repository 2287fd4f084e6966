// What ranks hold of a tensor that a collective sums up, where a job says how much of it is zero:
// a pure function of (key, rank, block). Any block may be asked for by itself, so that a bitmap
// costs no memory, and who has no real data knows as well as who has which blocks are not zero.
//
//   overlap   random              all                 none
//   rank 0    # . . # . . # .     # . . # . . # .     # . . # . . . .
//   rank 1    . # . # . . . #     # . . # . . # .     . # . . . # . .
//   rank 2    # . . . # # . .     # . . # . . # .     . . # . . . # .
//
// Densities are exact: of its B blocks each rank has round(density * B) that are not zero, and
// those of `none` end where the next rank's begin, at round(rank * density * B) of the blocks in
// an order that is drawn. `random`: every rank draws its own; `all`: one draw for all ranks.
//
// Values are small whole numbers, with sums of at most kLargestSum over all ranks, so that every
// sum is exact in every data type, in whatever order. In a block that is not zero each element of
// up to kLargestSum ranks is at least 1; of more ranks every so many have 1, the others 0.
//
// Units: elements; the last block may be shorter. Threading: immutable. Cost: about 30 ns for a
// rank and block, a quarter of a nanosecond for an element.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "collectives/schedule.h"

namespace ghostrank {

enum class Overlap : std::uint8_t { random, all, none };
std::string_view name_of(Overlap overlap);

// What a job says of its tensors.
struct Sparsity {
  double density = 1;         // share of blocks that are not zero
  std::uint64_t block = 256;  // elements
  Overlap overlap = Overlap::random;
  bool operator==(const Sparsity&) const = default;

  // Share of blocks that some of so many ranks have, on average.
  double union_density(int ranks) const;
  // Why so many ranks cannot hold such tensors; empty: they can.
  std::string refuses(int ranks) const;
};

class TensorContent {
 public:
  static constexpr std::int16_t kLargestSum = 250;

  // Of `elements` elements, on each of `ranks` ranks.
  TensorContent(const Sparsity& sparsity, std::uint64_t key, int ranks, std::uint64_t elements);

  const Sparsity& sparsity() const { return sparsity_; }
  int ranks() const { return ranks_; }
  std::uint64_t elements() const { return elements_; }
  std::uint64_t blocks() const { return blocks_; }

  bool nonzero(Rank rank, std::uint64_t block) const;
  // Whether any of these elements is in such a block.
  bool nonzero(Rank rank, std::uint64_t first, std::uint64_t elements) const;
  // In blocks that are not zero.
  std::uint64_t nonzero_elements(Rank rank) const;

  // What a rank has, and what all have together, in [first, first + count).
  void values(Rank rank, std::uint64_t first, std::uint64_t count, std::int16_t* out) const;
  void sums(std::uint64_t first, std::uint64_t count, std::int16_t* out) const;

 private:
  // The places in the drawn order of blocks that a rank's are at.
  struct Share {
    std::uint64_t first = 0, end = 0;
  };
  Share share(Rank rank) const;
  std::uint64_t place(std::uint64_t key, std::uint64_t block) const;
  std::uint64_t order_of(Rank rank) const;
  void add_block(Rank rank, std::uint64_t block, std::uint64_t first, std::uint64_t count,
                 std::int16_t* out) const;

  Sparsity sparsity_;
  std::uint64_t key_;
  int ranks_;
  std::uint64_t elements_, blocks_;
  std::uint64_t mask_;  // of numbers that blocks are drawn from, the least power of two of them
  int shift_;
};

// The key of a tensor in an iteration of a communicator.
std::uint64_t tensor_key(std::uint64_t seed, std::uint32_t communicator, std::uint32_t tensor,
                         std::uint32_t iteration);

}  // namespace ghostrank
