#include "emulator/verify/expected.h"

#include <vector>

#include "collectives/schemes/shared/numbers.h"
#include "emulator/verify/compressed_call.h"
#include "emulator/verify/elements.h"
#include "emulator/verify/values.h"

namespace ghostrank {
namespace {

std::vector<float> contribution_of(const RankCall& call, GroupRank rank) {
  if (call.compressed) return CompressedCall(call).tensor(rank);
  RankCall theirs = call;
  theirs.rank = rank;
  std::vector<float> all;
  ValueTile tile;
  for_each_tile(0, call.collective.count, [&](std::uint64_t index, std::uint64_t n) {
    contributed(theirs, index, n, tile.data());
    all.insert(all.end(), tile.begin(), tile.begin() + static_cast<std::ptrdiff_t>(n));
  });
  return all;
}

void compute(const RankCall& call, TensorResult& tensor) {
  std::vector<std::vector<float>> given;
  for (GroupRank r = 0; r < call.collective.size; ++r) given.push_back(contribution_of(call, r));
  const std::span<const float> result = tensor.reference->next(given);
  tensor.result.assign(result.begin(), result.end());
  tensor.call = call.salt;
}

}  // namespace

Checked check_expected(const RankCall& call, Range range, const std::byte* work) {
  TensorResult& tensor = *call.expected;
  if (tensor.call != call.salt) compute(call, tensor);
  const std::span<const float> right = std::span(tensor.result).subspan(range.first, range.count);
  const std::byte* received = work + range.first * call.collective.element_bytes;
  return {range.count, count_different(call.type, received,
                                       bytes_of_floats(call.type, right).data(), range.count)};
}

}  // namespace ghostrank
