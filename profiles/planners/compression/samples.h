// How much of its tensors a plan draws to find payload sizes that the data decide, and what a
// sample says of its tensor. Whole tensors of few ranks come before parts of many, because methods
// look at the largest element, or send less than one of thousands; sizes of ranks are alike.
//
// Units: elements. Threading: pure functions, immutable data.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "profiles/job/job.h"

namespace ghostrank {

struct DrawnPart {
  std::uint64_t elements = 0;
  int ranks = 0;  // that are drawn, at most; the others repeat their sizes
};

class DrawnParts {
 public:
  // `tensors`: that the plan draws, those of every step counted.
  DrawnParts(const JobSpec& spec, std::uint64_t tensors)
      : verify_(spec.run.verify),
        of_tensor_(std::min(kMostOfTensor, kMostDrawn / std::max<std::uint64_t>(1, tensors))) {
    if (!spec.compression->method->kept) return;
    const double sent = static_cast<double>(kLeastSent) / spec.compression->options.ratio;
    least_ = static_cast<std::uint64_t>(
        std::clamp(std::ceil(sent), static_cast<double>(kLeast), static_cast<double>(kMostLeast)));
  }

  // Of a tensor of so many elements; verified runs draw all.
  DrawnPart of(std::uint64_t elements) const {
    if (verify_) return {elements, std::numeric_limits<int>::max()};
    const std::uint64_t drawn = std::min(elements, std::max(least_, of_tensor_ / kRanks));
    const std::uint64_t ranks = of_tensor_ / std::max<std::uint64_t>(1, drawn);
    return {drawn, static_cast<int>(std::clamp<std::uint64_t>(ranks, 1, kMostRanks))};
  }

 private:
  // Of all tensors together, which takes some seconds; of one, all ranks together.
  static constexpr std::uint64_t kMostDrawn = 1 << 28, kMostOfTensor = 1 << 23;
  // Ranks that share what may be drawn of a large tensor; most ranks that are drawn of a small one.
  static constexpr std::uint64_t kRanks = 2, kMostRanks = 64;
  // Least elements of a sample: so many that the ratio asks for some of them, within limits.
  static constexpr std::uint64_t kLeast = 1024, kMostLeast = 1 << 16, kLeastSent = 4;

  bool verify_;
  std::uint64_t of_tensor_, least_ = kLeast;
};

// Appends to the sample of a tensor of `whole` elements, if the method scales by the L2 norm, one
// element that stands for the norm of the others.
inline void complete_norm(std::vector<float>& sample, std::uint64_t whole,
                          const CompressionOptions& options) {
  if (!options.l2 || sample.size() >= whole) return;
  double squares = 0;
  for (const float x : sample) squares += static_cast<double>(x) * static_cast<double>(x);
  const double others = static_cast<double>(whole) / static_cast<double>(sample.size()) - 1;
  sample.push_back(static_cast<float>(std::sqrt(squares * others)));
}

// The payload of a tensor of `whole` elements, of which a sample of `drawn` takes `measured`.
inline std::uint64_t payload_of_whole(std::uint64_t measured, std::uint64_t drawn,
                                      std::uint64_t whole) {
  if (drawn == whole) return measured;
  const double share = static_cast<double>(whole) / static_cast<double>(drawn);
  return static_cast<std::uint64_t>(std::llround(static_cast<double>(measured) * share / 8)) * 8;
}

}  // namespace ghostrank
