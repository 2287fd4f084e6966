// The streams by which a stage of a pipeline sends. A send may wait until its receiver has room, so
// every receiver has a stream of its own for activations, and another one for gradients.
//
// A receive has no stream: the stage waits for it where it needs the data. For its sends a stage
// waits in 1f1b only, in which Megatron-core and torch.distributed.pipelining wait for both sides
// of a batch; it computes on during the sends of the other schedules, for which torch's runtime
// waits at the end of the step. (Interleaved stages of Megatron-core wait for a send where the next
// one leaves, DualPipe's for each batch. Both then have receives posted earlier than here, so these
// waits are left out.)
#pragma once

#include <string>
#include <vector>

#include "profiles/planners/shared/pipeline.h"

namespace ghostrank {

class PipelineSends {
 public:
  // Appends the names of the streams to `names`, which has those of the streams before them.
  PipelineSends(const Pipeline& pipeline, int stage, std::vector<std::string>& names);

  // The stream of what `stage` takes: activations of a forward, or gradients.
  std::size_t stream(bool forward, int stage) const;

  std::vector<std::size_t> streams() const;

  // The stage waits for its sends.
  bool are_awaited() const { return awaited_; }

 private:
  struct To {
    bool forward;
    int stage;
    bool operator==(const To&) const = default;
  };
  std::size_t first_;
  bool awaited_;
  std::vector<To> to_;
};

}  // namespace ghostrank
