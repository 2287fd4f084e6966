// A file of measured overlaps: YAML to shares of blocks, of all and by tensor, and tensors drawn
// from them.
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
    const MeasuredOverlaps read =
        measured_overlaps(parse_yaml(fuzz::text_of(data, size), source), 16);
    const auto ranks = static_cast<int>(read.all.measured->size() - 1);
    auto layout = std::make_shared<TensorLayout>();
    const auto check = [&](const Sparsity& one) {
      const auto& shares = *one.measured;
      fuzz::require(std::abs(std::accumulate(shares.begin(), shares.end(), 0.0) - 1) < 1e-5);
      fuzz::require(one.density >= 0 && one.density <= 1 + 1e-5);
      fuzz::require(static_cast<int>(shares.size()) == ranks + 1);
    };
    check(read.all);
    for (const TensorRule& rule : read.by_tensor) {
      check(rule.sparsity);
      const std::uint64_t at = 50 * layout->parts.size();
      layout->parts.push_back({at, at + 50, rule.sparsity});
    }
    const std::uint64_t elements = 1000 + 50 * layout->parts.size();
    const TensorContent content(read.all, 1, ranks, elements,
                                layout->parts.empty() ? nullptr : layout);
    for (GroupRank r = 0; r < ranks; ++r) fuzz::require(content.nonzero_elements(r) <= elements);
    ++fuzz::accepted;
  } catch (const Error& refused) {
    fuzz::require(*refused.what() != '\0');
  }
  return 0;
}
