#include "emulator/verify/verify_weights.h"

#include <vector>

#include "collectives/schemes/numbers.h"
#include "emulator/verify/elements.h"
#include "emulator/verify/verify_values.h"

namespace ghostrank {
namespace {

void take_step(const RankCall& call, TensorWeights& weights) {
  std::vector<float> sums;
  ValueTile tile;
  for_each_tile(0, call.collective.count, [&](std::uint64_t index, std::uint64_t n) {
    promised_sums(call, index, n, tile.data());
    sums.insert(sums.end(), tile.begin(), tile.begin() + static_cast<std::ptrdiff_t>(n));
  });
  weights.reference.step(sums);
  weights.stepped = call.salt;
}

}  // namespace

Checked check_weights(const RankCall& call, Range range, const std::byte* work) {
  TensorWeights& weights = *call.weights;
  if (weights.stepped != call.salt) take_step(call, weights);
  std::vector<float> right(range.count);
  for (std::uint64_t i = 0; i < range.count; ++i)
    right[i] = weights.reference.weight(range.first + i);
  const std::byte* received = work + range.first * call.collective.element_bytes;
  return {range.count, count_different(call.type, received,
                                       bytes_of_floats(call.type, right).data(), range.count)};
}

}  // namespace ghostrank
