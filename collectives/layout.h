// Where the blocks of a collective lie in a rank's buffers: block j follows block j-1, and so its
// offset is the prefix sum of the blocks before it. Blocks have `count` elements each, but in an
// all-gather-v and an all-to-all-v, whose blocks are as long as `counts` says and where a rank's
// buffers differ from another's.
//
// Units: elements. Threading: immutable. Memory: nothing for equal blocks; one number per block of
// an all-gather-v and two of an all-to-all-v.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/schedule.h"

namespace ghostrank {

class Layout {
 public:
  explicit Layout(const Collective& c);

  // Block j of the work buffer of rank r, and of its input buffer (what r has for j).
  Block work(Rank r, Rank j) const;
  Block input(Rank r, Rank j) const;
  // The block of r's work buffer that holds an element.
  Rank block_at(Rank r, std::uint64_t element) const;
  std::uint64_t longest() const { return longest_; }

 private:
  enum class Kind : std::uint8_t { equal, by_owner, by_pair };
  Kind kind_;
  int size_;
  std::uint64_t count_, longest_;
  // By owner: where block j begins, and the end. By pair: work_[r * (n+1) + j], and input_ alike.
  std::vector<std::uint64_t> work_, input_;
};

}  // namespace ghostrank
