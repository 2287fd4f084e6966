// A binary heap of (level, resource), the lowest level first. Choosing the lower of two children
// takes no branch, because levels are unpredictable and a mispredicted branch costs more than the
// rest of a step. Everything is moved as std::make_heap, push_heap and pop_heap of libstdc++ move
// it, so equal levels come in the same order: that decides which resource holds a flow back, and so
// the last bits of rates.
//
// Threading: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ghostrank {

using Level = std::pair<double, std::uint32_t>;

// Puts `level` into the hole or above it, not above `top`.
inline void raise_in_heap(Level* levels, std::size_t hole, std::size_t top, Level level) {
  while (hole > top) {
    const std::size_t parent = (hole - 1) / 2;
    if (levels[parent].first <= level.first) break;
    levels[hole] = levels[parent];
    hole = parent;
  }
  levels[hole] = level;
}

// Puts `level` into the heap below `top`: the hole sinks to the end, then the level rises to its
// place.
inline void put_below(std::vector<Level>& heap, std::size_t top, Level level) {
  Level* const levels = heap.data();
  const std::size_t size = heap.size();
  std::size_t hole = top, right = 2 * hole + 2;
  for (; right < size; right = 2 * hole + 2) {
    const std::size_t lower = right - (levels[right].first > levels[right - 1].first);
    levels[hole] = levels[lower];
    hole = lower;
  }
  if (right == size) {  // there is only a left child
    levels[hole] = levels[right - 1];
    hole = right - 1;
  }
  raise_in_heap(levels, hole, top, level);
}

inline void make_heap_of(std::vector<Level>& levels) {
  for (std::size_t top = levels.size() / 2; top-- > 0;) put_below(levels, top, levels[top]);
}

inline void push_to_heap(std::vector<Level>& heap, Level level) {
  heap.push_back(level);
  raise_in_heap(heap.data(), heap.size() - 1, 0, level);
}

// Removes the first.
inline void pop_heap_of(std::vector<Level>& heap) {
  const Level last = heap.back();
  heap.pop_back();
  if (!heap.empty()) put_below(heap, 0, last);
}

}  // namespace ghostrank
