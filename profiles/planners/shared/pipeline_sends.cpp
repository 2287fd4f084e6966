#include "profiles/planners/shared/pipeline_sends.h"

#include <algorithm>
#include <numeric>

namespace ghostrank {

PipelineSends::PipelineSends(const Pipeline& pipeline, int stage, std::vector<std::string>& names)
    : first_(names.size()), awaited_(pipeline.schedule == "1f1b") {
  for (int chunk = 0; chunk < pipeline.chunks; ++chunk)
    for (const bool forward : {true, false}) {
      const auto other = pipeline.neighbour(stage, chunk, forward ? 1 : -1);
      if (!other || *other == stage) continue;
      const To to{forward, *other};
      if (std::find(to_.begin(), to_.end(), to) != to_.end()) continue;
      to_.push_back(to);
      names.push_back((forward ? "activations to stage " : "gradients to stage ") +
                      std::to_string(*other));
    }
}

std::size_t PipelineSends::stream(bool forward, int stage) const {
  return first_ + static_cast<std::size_t>(std::find(to_.begin(), to_.end(), To{forward, stage}) -
                                           to_.begin());
}

std::vector<std::size_t> PipelineSends::streams() const {
  std::vector<std::size_t> out(to_.size());
  std::iota(out.begin(), out.end(), first_);
  return out;
}

}  // namespace ghostrank
