// See layout.h.
#include "collectives/layout.h"

#include <algorithm>

namespace ghostrank {
namespace {

Block between(const std::vector<std::uint64_t>& begins, std::size_t i, Buffer buffer) {
  return {begins[i], begins[i + 1] - begins[i], buffer};
}

}  // namespace

Layout::Layout(const Collective& c)
    : kind_(Kind::equal), size_(c.size), count_(c.count), longest_(c.count) {
  if (!c.counts) return;
  const std::vector<std::uint64_t>& counts = *c.counts;
  const std::size_t n = c.size;
  longest_ = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
  kind_ = c.func == Func::all_gather_v ? Kind::by_owner : Kind::by_pair;
  if (kind_ == Kind::by_owner) {
    work_.assign(n + 1, 0);
    for (std::size_t j = 0; j < n; ++j) work_[j + 1] = work_[j] + counts[j];
    return;
  }
  work_.assign(n * (n + 1), 0);
  input_ = work_;
  for (std::size_t r = 0; r < n; ++r)
    for (std::size_t j = 0; j < n; ++j) {
      const std::size_t at = r * (n + 1) + j;
      work_[at + 1] = work_[at] + counts[j * n + r];
      input_[at + 1] = input_[at] + counts[r * n + j];
    }
}

Block Layout::work(GroupRank r, GroupRank j) const {
  const std::size_t block = j;
  if (kind_ == Kind::equal) return {block * count_, count_};
  if (kind_ == Kind::by_owner) return between(work_, block, Buffer::work);
  return between(work_, r * (static_cast<std::size_t>(size_) + 1) + block, Buffer::work);
}

Block Layout::input(GroupRank r, GroupRank j) const {
  const std::size_t block = j;
  if (kind_ != Kind::by_pair) return {block * count_, count_, Buffer::input};
  return between(input_, r * (static_cast<std::size_t>(size_) + 1) + block, Buffer::input);
}

GroupRank Layout::block_at(GroupRank r, std::uint64_t element) const {
  if (kind_ == Kind::equal) return static_cast<GroupRank>(element / count_);
  const auto row = kind_ == Kind::by_owner ? 0 : r * (static_cast<std::ptrdiff_t>(size_) + 1);
  const auto begin = work_.begin() + row, end = begin + size_ + 1;
  return static_cast<GroupRank>(std::upper_bound(begin, end, element) - begin) - 1;
}

}  // namespace ghostrank
