#include <algorithm>
#include <utility>

#include "profiles/model/convolutional.h"

namespace ghostrank {

void Network::add_weights(Layer& layer, const std::string& name, std::uint64_t out,
                          const ConvolutionShape& shape) {
  const std::uint64_t kernel = std::max(shape.height, shape.width);
  width_ = shape.valid ? (width_ < kernel ? 1 : (width_ - kernel) / shape.stride + 1)
                       : (width_ + shape.stride - 1) / shape.stride;
  const std::uint64_t weights = out * channels_ * shape.height * shape.width;
  layer.parameters.push_back({name, weights, out});
  layer.forward_flops =
      2 * static_cast<double>(weights) * static_cast<double>(width_) * static_cast<double>(width_);
  channels_ = out;
}

void Network::add_norm(Layer& layer, const std::string& name) {
  layer.parameters.push_back({name + ".weight", channels_});
  layer.parameters.push_back({name + ".bias", channels_});
  model_.running_statistics += 2 * channels_;
  ++model_.batch_counters;
}

void Network::convolution(const std::string& name, std::uint64_t out, const ConvolutionShape& shape,
                          bool bias) {
  Layer layer{name, {}, 0, 0, 0};
  if (model_.layers.empty()) layer.kept = static_cast<double>(channels_ * width_ * width_);
  add_weights(layer, "weight", out, shape);
  if (bias) layer.parameters.push_back({"bias", out});
  model_.layers.push_back(std::move(layer));
}

void Network::normed_convolution(const std::string& name, std::uint64_t out, std::uint64_t size) {
  Layer layer{name, {}, 0, 0, 0};
  layer.kept =
      2 * static_cast<double>(channels_ * width_ * width_);  // the norm's input, ReLU's output
  add_norm(layer, "norm");
  add_weights(layer, "conv.weight", out, {size, size, 1, false});
  model_.layers.push_back(std::move(layer));
}

void Network::batch_norm(const std::string& name) {
  add_norm(model_.layers.back(), name);
  keep();
}

void Network::linear(const std::string& name, std::uint64_t out, std::uint64_t in) {
  model_.layers.push_back({name,
                           {{"weight", out * in, out}, {"bias", out}},
                           2 * static_cast<double>(in) * static_cast<double>(out),
                           0,
                           0,
                           static_cast<double>(in)});
}

}  // namespace ghostrank
