// How OmniReduce cuts a tensor: into blocks, the blocks into columns, and the columns into slots.
//
//   3 slots of 2 columns:   block   0 1 | 2 3 | 4 5 | 6 7 | 8 9 | ...
//                           slot     0     1     2     0     1
//   column 1 of slot 0 has the blocks 1, 7, 13, ...; a message of slot 0 has at most one block of
//   each of its columns
//
// A rank walks every column from one nonzero block to the next and skips the others. Blocks are
// numbered over the tensor; behind the last block of column c comes end(c), which is equal to c
// modulo the columns of a slot, as all blocks of the column are. So a number tells its column.
//
// Units: elements, blocks. Threading: one owner.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/agent.h"

namespace ghostrank {

struct BlockShape {
  int block = 256;  // elements of a block
  int columns = 1;  // of a slot
  int slots = 1;    // of all aggregators

  std::uint32_t stride() const { return static_cast<std::uint32_t>(columns) * slots; }
  std::uint64_t blocks_of(std::uint64_t elements) const {
    return (elements + static_cast<std::uint64_t>(block) - 1) / static_cast<std::uint64_t>(block);
  }
  // Columns of a slot that have a block.
  int columns_in(int slot, std::uint64_t blocks) const;
  int column_of(std::uint32_t block_or_end) const {
    return static_cast<int>(block_or_end % static_cast<std::uint32_t>(columns));
  }
  std::uint32_t end(int column) const { return first_end() + static_cast<std::uint32_t>(column); }
  bool is_end(std::uint32_t block_or_end) const { return block_or_end >= first_end(); }
  // Blocks of a tensor must be fewer.
  std::uint32_t first_end() const {
    const auto n = static_cast<std::uint32_t>(columns);
    return (0xffffffffU / n - 1) * n;
  }
};

// A rank's position in the columns of one tensor.
class ColumnWalk {
 public:
  explicit ColumnWalk(const BlockShape& shape) : shape_(shape) {}

  struct Column {
    std::uint32_t current = 0;  // the block that all ranks sum; at the end: end(c)
    std::uint32_t next = 0;     // the rank's first nonzero block behind those it has sent
  };

  // Puts every column on its first block.
  void start(std::uint64_t elements, Tensor& tensor);
  const BlockShape& shape() const { return shape_; }
  std::uint64_t blocks() const { return blocks_; }
  int columns_in(int slot) const { return shape_.columns_in(slot, blocks_); }
  Column& at(int slot, int column) { return columns_[index(slot, column)]; }
  bool ended(int slot, int column) { return shape_.is_end(at(slot, column).current); }

  // Whether a column may go on to `block`: a later block of this column, or its end.
  bool may_go_to(int slot, int column, std::uint32_t block) {
    if (column >= columns_in(slot) || ended(slot, column)) return false;
    const std::uint32_t current = at(slot, column).current;
    if (shape_.is_end(block)) return shape_.column_of(block) == column;
    return block > current && block < blocks_ && (block - current) % shape_.stride() == 0;
  }
  // Goes on to a block that the aggregator names. True if the rank has it and so must send it; then
  // `next` is its nonzero block behind this one.
  bool go_to(int slot, int column, std::uint32_t block, Tensor& tensor);
  // Appends the current block, padded with zeros; nothing if the rank holds no real data.
  void append_current(int slot, int column, Tensor& tensor, std::uint32_t element_bytes,
                      std::vector<std::byte>& out);
  // Stores the sum of the current block; does nothing without content.
  void store_current(int slot, int column, Tensor& tensor, std::uint32_t element_bytes,
                     std::span<const std::byte> sum);

 private:
  std::size_t index(int slot, int column) const {
    return static_cast<std::size_t>(slot) * shape_.columns + column;
  }
  std::uint32_t nonzero_behind(std::uint32_t block, Tensor& tensor) const;
  std::uint64_t first_of(std::uint32_t block) const {
    return std::uint64_t{block} * static_cast<std::uint64_t>(shape_.block);
  }
  std::uint64_t length_of(std::uint32_t block) const;

  BlockShape shape_;
  std::uint64_t elements_ = 0, blocks_ = 0;
  std::vector<Column> columns_;
};

}  // namespace ghostrank
