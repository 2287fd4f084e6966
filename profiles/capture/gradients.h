// What a captured run's gradients looked like, in the files that a job reads: magnitudes, of all
// gradients and of each tensor, for methods of compression (tensors.distribution), and likewise
// coinciding blocks for sparse collectives (tensors.overlap).
//
// Counts are sums over all ranks and the steps in which the hooks looked. Threading: pure
// functions.
#pragma once

#include <string>
#include <vector>

#include "profiles/capture/merge.h"
#include "profiles/capture/records.h"

namespace ghostrank {

// CSV, magnitude,count: elements of magnitudes up to this one, from the row before. Zeros are in a
// bin of their own, below a 2^30th of the smallest magnitude, since methods look at magnitudes.
// Throws Error(usage) if nobody looked at the gradients.
std::string gradient_magnitudes(const std::vector<CapturedRank>& ranks);

// The same for each tensor, magnitude,count,tensor. Tensors are called and ordered as in the
// profile that has these layers: "fc.0".
std::string tensor_magnitudes(const std::vector<CapturedRank>& ranks,
                              const std::vector<CaptureLayer>& layers);

// YAML, schema ghostrank/overlap/1: shares of blocks that are nonzero on exactly 0, 1, 2 ... ranks.
std::string gradient_overlap(const std::vector<CapturedRank>& ranks);

// The same, and for each tensor the shares of the blocks that begin in it. A tensor in which none
// does is left out.
std::string tensor_overlaps(const std::vector<CapturedRank>& ranks,
                            const std::vector<CaptureLayer>& layers);

// For people: share of elements that are zero, and of blocks that are nonzero on a rank.
struct GradientFacts {
  double zeros = 0, density = 0;
  std::uint64_t block = 0;
};
GradientFacts gradient_facts(const std::vector<CapturedRank>& ranks);

}  // namespace ghostrank
