// Deep gradient compression (Lin et al., 2018): sends the elements above a threshold that a sample
// estimates (sampled_threshold.h). The rank's memory (memory.h) holds its momentum and masks.
// Magnitude 0 is never sent.
//
// Cost: GRACE's implementation searches by dozens of small kernels, so all of it is per tensor.
#include <cmath>
#include <limits>
#include <vector>

#include "collectives/compress/methods.h"
#include "collectives/compress/selection.h"
#include "collectives/compress/sparsify/sampled_threshold.h"

namespace ghostrank {
namespace {

float by_sample(std::span<const float> tensor, const CompressionOptions& options) {
  std::vector<float> magnitudes(tensor.begin(), tensor.end());
  for (float& x : magnitudes) x = std::isnan(x) ? 0 : std::abs(x);
  return std::max(sampled_threshold(magnitudes, options.ratio, options.seed),
                  std::numeric_limits<float>::denorm_min());
}

}  // namespace

const Compressor kDgc =
    selects_by<by_sample>("dgc", fitted(580, LaunchedKernels::many_small), true);

}  // namespace ghostrank
