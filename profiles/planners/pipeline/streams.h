// The streams on which a stage of a pipeline sends and receives.
//
//   sends       for each stage sent to, one for activations and one for gradients, because a send
//               may wait until its receiver has room; receives are on the compute stream
//   transfers   likewise, and as many for what other stages send
//   pairs       one for all transfers with another stage, in the order in which they are launched:
//               PyTorch gives an isend or irecv outside a batch the communicator of the two ranks,
//               and that communicator one stream. With two stages Megatron-core has a process group
//               for each direction, so there is a stream for each
//
// Threading: immutable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiles/planners/pipeline/pipeline.h"

namespace ghostrank {

class PipelineStreams {
 public:
  enum class Layout : std::uint8_t { sends, transfers, pairs };

  // Appends the names of the streams to `names`, which has those of the streams before them.
  PipelineStreams(const Pipeline& pipeline, int stage, Layout layout,
                  std::vector<std::string>& names);

  Layout layout() const { return layout_; }
  // The stream on which the stage sends to `other`, or receives from it: activations of a forward,
  // or gradients. Layout::sends has none for receives.
  std::size_t stream(bool sends, bool forward, int other) const;

  std::vector<std::size_t> streams() const;

 private:
  std::string name(bool sends, bool forward, int other) const;

  Layout layout_;
  bool two_stages_;
  std::size_t first_;
  std::vector<std::string> names_;
};

}  // namespace ghostrank
