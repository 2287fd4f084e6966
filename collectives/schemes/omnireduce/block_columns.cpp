#include "collectives/schemes/omnireduce/block_columns.h"

#include <algorithm>

namespace ghostrank {

int BlockShape::columns_in(int slot, std::uint64_t blocks) const {
  const std::uint64_t before = static_cast<std::uint64_t>(slot) * columns;
  return static_cast<int>(std::min<std::uint64_t>(blocks - std::min(blocks, before), columns));
}

void ColumnWalk::start(std::uint64_t elements, Tensor& tensor) {
  elements_ = elements;
  blocks_ = shape_.blocks_of(elements);
  columns_.resize(std::min<std::uint64_t>(shape_.stride(), blocks_));
  for (std::uint32_t c = 0; c < columns_.size(); ++c) columns_[c] = {c, nonzero_behind(c, tensor)};
}

std::uint32_t ColumnWalk::nonzero_behind(std::uint32_t block, Tensor& tensor) const {
  const int column = shape_.column_of(block);
  for (std::uint64_t b = block + std::uint64_t{shape_.stride()}; b < blocks_; b += shape_.stride())
    if (const auto found = static_cast<std::uint32_t>(b);
        tensor.nonzero(first_of(found), length_of(found)))
      return found;
  return shape_.end(column);
}

std::uint64_t ColumnWalk::length_of(std::uint32_t block) const {
  return std::min(static_cast<std::uint64_t>(shape_.block), elements_ - first_of(block));
}

bool ColumnWalk::go_to(int slot, int column, std::uint32_t block, Tensor& tensor) {
  Column& c = at(slot, column);
  c.current = block;
  if (shape_.is_end(block) || block != c.next) return false;
  c.next = nonzero_behind(block, tensor);
  return true;
}

void ColumnWalk::append_current(int slot, int column, Tensor& tensor, std::uint32_t element_bytes,
                                std::vector<std::byte>& out) {
  const std::uint32_t block = at(slot, column).current;
  const auto content = tensor.read(first_of(block), length_of(block));
  if (content.empty()) return;
  out.insert(out.end(), content.begin(), content.end());
  out.resize(out.size() + static_cast<std::size_t>(shape_.block) * element_bytes - content.size());
}

void ColumnWalk::store_current(int slot, int column, Tensor& tensor, std::uint32_t element_bytes,
                               std::span<const std::byte> sum) {
  const std::uint32_t block = at(slot, column).current;
  tensor.write(first_of(block),
               sum.first(std::min<std::size_t>(sum.size(), length_of(block) * element_bytes)));
}

}  // namespace ghostrank
