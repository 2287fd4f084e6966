// Where the blocks of a collective lie in a rank's buffers. Block j follows block j-1, so its
// offset is the prefix sum of the blocks before it. Blocks have `count` elements each, except in an
// all-gather-v and an all-to-all-v: there `counts` gives their lengths, and in an all-to-all-v the
// buffers differ between ranks.
//
// Units: elements. Threading: immutable. Memory: nothing for equal blocks, one number per block of
// an all-gather-v, two per block of an all-to-all-v.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/schedule.h"

namespace ghostrank {

class Layout {
 public:
  explicit Layout(const Collective& c);

  // Block j of rank r's work buffer, and of its input buffer (the data that r has for j).
  Block work(GroupRank r, GroupRank j) const;
  Block input(GroupRank r, GroupRank j) const;
  // The block of r's work buffer that holds `element`.
  GroupRank block_at(GroupRank r, std::uint64_t element) const;
  std::uint64_t longest() const { return longest_; }

 private:
  enum class Kind : std::uint8_t { equal, by_owner, by_pair };
  Kind kind_;
  int size_;
  std::uint64_t count_, longest_;
  // by_owner: the begin of block j, then the end. by_pair: work_[r * (n+1) + j], and input_ alike.
  std::vector<std::uint64_t> work_, input_;
};

}  // namespace ghostrank
