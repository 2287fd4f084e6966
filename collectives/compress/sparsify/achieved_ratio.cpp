#include "collectives/compress/sparsify/achieved_ratio.h"

#include <algorithm>
#include <functional>

namespace ghostrank {

AchievedRatio::AchievedRatio(const Compressor& method, double ratio, bool feedback)
    : method_(method), ratio_(ratio), feedback_(feedback), stages_(ratio) {}

double AchievedRatio::step(std::span<const float> gradients, std::uint64_t seed) {
  CompressionOptions options;
  options.ratio = ratio_;
  options.seed = options.shared_seed = seed;
  if (has_stages(method_.name)) {
    options.stages = stages_.stages();
    options.first_stage = stages_.first_stage();
  }
  std::vector<float> tensor(gradients.begin(), gradients.end());
  residual_.resize(tensor.size());
  if (feedback_)
    std::transform(tensor.begin(), tensor.end(), residual_.begin(), tensor.begin(), std::plus<>());
  std::uint64_t sent = 0;
  if (!method_.measure) {
    sent = method_.kept(tensor.size(), options);
  } else if (!feedback_) {
    sent = method_.carried(method_.measure(tensor, options));
  }
  if (feedback_) {
    const std::vector<std::byte> payload = payload_of(method_, tensor, options);
    if (method_.measure) sent = method_.carried(payload.size() / bytes_of(method_.payload));
    method_.decompress(payload, options, residual_);
    std::transform(tensor.begin(), tensor.end(), residual_.begin(), residual_.begin(),
                   std::minus<>());
  }
  const double share = static_cast<double>(sent) / static_cast<double>(tensor.size());
  stages_.sent(share);
  return share / ratio_;
}

}  // namespace ghostrank
