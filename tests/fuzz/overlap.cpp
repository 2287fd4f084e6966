// A file of measured overlaps: YAML to shares of blocks, and tensors drawn from them.
#include <cmath>
#include <memory>
#include <numeric>

#include "profiles/error.h"
#include "profiles/planners/tensors.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank;
  static const auto source =
      std::make_shared<const Source>(Source{"overlap.yaml", "overlap.yaml", true});
  try {
    const Sparsity read = measured_overlap(parse_yaml(fuzz::text_of(data, size), source), 16);
    const auto& shares = *read.measured;
    fuzz::require(std::abs(std::accumulate(shares.begin(), shares.end(), 0.0) - 1) < 1e-5);
    fuzz::require(read.density >= 0 && read.density <= 1 + 1e-5);
    const auto ranks = static_cast<int>(shares.size() - 1);
    const TensorContent content(read, 1, ranks, 1000);
    for (GroupRank r = 0; r < ranks; ++r) fuzz::require(content.nonzero_elements(r) <= 1000);
    ++fuzz::accepted;
  } catch (const Error& refused) {
    fuzz::require(*refused.what() != '\0');
  }
  return 0;
}
