// Collectives to try algorithms on. The v-variants get ragged counts: some blocks are empty, others
// are longer or shorter than `count`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/schedule.h"

namespace ghostrank::testing {

inline Counts ragged_counts(Func func, int size, std::uint64_t count) {
  if (!is_ragged(func)) return nullptr;
  std::vector<std::uint64_t> counts;
  for (std::size_t i = 0; i < counts_needed(func, size); ++i)
    counts.push_back(i % 3 == 1 ? 0 : count * ((i * 5 + 4) % 7) / 4);
  return std::make_shared<const std::vector<std::uint64_t>>(std::move(counts));
}

inline Collective call(Func func, int size, std::uint64_t count, GroupRank root = 0,
                       std::uint32_t element_bytes = 4) {
  // A send_recv goes to the rank after its root.
  return {func,
          size,
          count,
          element_bytes,
          root,
          ragged_counts(func, size, count),
          (root + 1) % std::max(1, size)};
}

inline Collective all_reduce(int size, std::uint64_t count) {
  return {Func::all_reduce, size, count, 4, 0};
}

}  // namespace ghostrank::testing
