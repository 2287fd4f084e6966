#include "profiles/planners/pipeline/memory.h"

#include <algorithm>

namespace ghostrank {

double most_kept(const Pipeline& pipeline, int stage, std::span<const double> kept,
                 std::span<const double> passing) {
  Pipeline few = pipeline;
  few.micro_batches = std::min(few.micro_batches, 4 * few.stages);
  double open = 0, most = 0;
  for (const Slot& slot : pipeline_slots(few, stage)) {
    const std::size_t chunk = slot.chunk;
    if (slot.pass == Pass::forward) open += kept[chunk];
    most = std::max(most, open + passing[chunk]);
    // The weight pass still needs what the input pass has read.
    if (slot.pass == Pass::backward || slot.pass == Pass::weight_backward) open -= kept[chunk];
  }
  return most;
}

}  // namespace ghostrank
