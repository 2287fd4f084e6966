#include "profiles/planners/pipeline/streams.h"

#include <algorithm>
#include <numeric>

namespace ghostrank {

PipelineStreams::PipelineStreams(const Pipeline& pipeline, int stage, Layout layout,
                                 std::vector<std::string>& names)
    : layout_(layout), two_stages_(pipeline.stages == 2), first_(names.size()) {
  for (int chunk = 0; chunk < pipeline.chunks; ++chunk)
    for (const bool forward : {true, false})
      for (const bool sends : {true, false}) {
        if (!sends && layout == Layout::sends) continue;
        const auto other = pipeline.neighbour(stage, chunk, forward == sends ? 1 : -1);
        if (!other || *other == stage) continue;
        const std::string stream = name(sends, forward, *other);
        if (std::find(names_.begin(), names_.end(), stream) == names_.end())
          names_.push_back(stream);
      }
  names.insert(names.end(), names_.begin(), names_.end());
}

std::string PipelineStreams::name(bool sends, bool forward, int other) const {
  const std::string where = (sends ? "to stage " : "from stage ") + std::to_string(other);
  if (layout_ != Layout::pairs) return (forward ? "activations " : "gradients ") + where;
  return two_stages_ ? where : "stage " + std::to_string(other);
}

std::size_t PipelineStreams::stream(bool sends, bool forward, int other) const {
  return first_ +
         static_cast<std::size_t>(
             std::find(names_.begin(), names_.end(), name(sends, forward, other)) - names_.begin());
}

std::vector<std::size_t> PipelineStreams::streams() const {
  std::vector<std::size_t> out(names_.size());
  std::iota(out.begin(), out.end(), first_);
  return out;
}

}  // namespace ghostrank
