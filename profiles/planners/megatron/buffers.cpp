#include "profiles/planners/megatron/buffers.h"

#include <algorithm>
#include <numeric>
#include <ranges>
#include <tuple>
#include <utility>

#include "profiles/planners/shared/round_up.h"

namespace ghostrank {

std::vector<GradientBucket> megatron_buckets(std::span<const Parameter> parameters,
                                             const BufferLayout& layout) {
  const std::uint64_t start_multiple = layout.sharded ? 64 : 1;
  const std::uint64_t end_multiple =
      layout.sharded ? std::lcm(layout.shards, std::uint64_t{128}) : 1;
  std::vector<GradientBucket> buckets;
  GradientBucket open;
  const auto close = [&] {
    if (open.numel == 0) return;
    open.numel = round_up(open.numel, end_multiple);
    buckets.push_back(open);
    open = {};
  };
  for (const Parameter& parameter : std::views::reverse(parameters)) {
    const bool alone = layout.sharded && parameter.tied;
    if (alone) close();
    const std::pair first{parameter.unit, parameter.module};
    if (open.numel == 0 || first < std::pair{open.first_unit, open.first_module})
      std::tie(open.first_unit, open.first_module) = first;
    open.numel = round_up(open.numel, start_multiple) + parameter.numel;
    if (alone || (layout.bucket_size > 0 && open.numel >= layout.bucket_size)) close();
  }
  close();
  return buckets;
}

}  // namespace ghostrank
