// The streams by which a stage of a pipeline sends. A send may wait until its receiver has room,
// and the stage computes meanwhile; so every receiver has a stream of its own for activations, and
// another one for gradients.
//
// A receive has no stream: the stage waits for it where it needs the data.
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

 private:
  struct To {
    bool forward;
    int stage;
    bool operator==(const To&) const = default;
  };
  std::size_t first_;
  std::vector<To> to_;
};

}  // namespace ghostrank
