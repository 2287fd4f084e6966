// A captured run's gradients as files that a job reads: histograms of magnitudes for methods of
// compression (tensors.distribution), and how many ranks share a nonzero block, for sparse
// collectives (tensors.overlap). Both for all gradients together, or for each tensor.
//
// Counts are sums over all ranks and over the steps whose gradients the hooks recorded. Threading:
// pure functions.
#pragma once

#include <string>
#include <vector>

#include "profiles/capture/merge.h"
#include "profiles/capture/records.h"

namespace ghostrank {

// CSV with columns magnitude,count: the elements above the previous row's magnitude, up to this
// one. Zeros are in a bin of their own, below a 2^30th of the smallest magnitude. Throws
// Error(usage) if the capture recorded no gradients.
std::string gradient_magnitudes(const std::vector<CapturedRank>& ranks);

// The same for each tensor: magnitude,count,tensor. Names and order of tensors are those of the
// profile with these layers: "fc.0".
std::string tensor_magnitudes(const std::vector<CapturedRank>& ranks,
                              const std::vector<CaptureLayer>& layers);

// YAML, schema ghostrank/overlap/1: shares of blocks that are nonzero on exactly 0, 1, 2 ... ranks.
std::string gradient_overlap(const std::vector<CapturedRank>& ranks);

// The same, and for each tensor the shares of the blocks that begin in it. Leaves out a tensor in
// which no block begins.
std::string tensor_overlaps(const std::vector<CapturedRank>& ranks,
                            const std::vector<CaptureLayer>& layers);

// For people: share of elements that are zero, and of blocks that are nonzero on a rank.
struct GradientFacts {
  double zeros = 0, density = 0;
  std::uint64_t block = 0;
};
GradientFacts gradient_facts(const std::vector<CapturedRank>& ranks);

}  // namespace ghostrank
