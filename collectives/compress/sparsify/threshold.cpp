// Sends the elements whose magnitude exceeds a fixed threshold: 8 bytes each, values and indices.
#include <cmath>
#include <limits>

#include "collectives/compress/methods.h"
#include "collectives/compress/selection.h"

namespace ghostrank {
namespace {

float above(std::span<const float>, const CompressionOptions& options) {
  return std::nextafter(static_cast<float>(options.threshold),
                        std::numeric_limits<float>::infinity());
}

}  // namespace

const Compressor kThreshold = selects_by<above>("threshold", by_passes(3, 4), false);

}  // namespace ghostrank
