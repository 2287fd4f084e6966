// What the builders of convolutional networks share: a network in the making, layer by layer.
//
// One layer per convolution (with the batch norm behind it, or in front of it) or fully connected
// layer. Forward FLOPs per sample: convolution 2 k_h k_w c_in c_out h_out w_out, fully connected
// 2 in out; norms and pooling count 0.
//
// PyTorch keeps in memory for the backward: the input of a convolution, a linear map, a batch norm
// and an average pooling; the output of a ReLU; the input of a max pooling and the indices of its
// maxima (8 bytes an output). A tensor that two of them need counts once, with the layer that made
// it. So a convolution with batch norm and ReLU keeps two tensors; whether ReLU works in place does
// not matter, because nothing needs a batch norm's output.
// Threading: plain values.
#pragma once

#include <cstdint>
#include <string>

#include "profiles/model/model.h"

namespace ghostrank {

// A kernel of `height` x `width`. Padding keeps the input's width, which the stride then divides; a
// `valid` convolution has none, and loses the edges.
struct ConvolutionShape {
  std::uint64_t height = 1, width = 1, stride = 1;
  bool valid = false;
};

class Network {
 public:
  // `image`: width and height of the input in pixels; it has three channels.
  Network(Model& model, std::uint64_t image) : model_(model), width_(image) {}

  std::uint64_t channels() const { return channels_; }
  std::uint64_t width() const { return width_; }
  void set(std::uint64_t channels, std::uint64_t width) {
    channels_ = channels;
    width_ = width;
  }
  void pool(std::uint64_t factor) { width_ = (width_ + factor - 1) / factor; }
  // Max pooling: the indices of the maxima stay in memory.
  void max_pool(std::uint64_t factor) {
    pool(factor);
    keep_maxima(channels_);
  }
  // Keeps the current tensor for the backward, or the indices of the maxima of `channels` channels
  // of its width.
  void keep() { model_.layers.back().kept += static_cast<double>(channels_ * width_ * width_); }
  void keep_maxima(std::uint64_t channels) {
    model_.layers.back().kept_bytes += static_cast<double>(8 * channels * width_ * width_);
  }
  void relu() { keep(); }

  void convolution(const std::string& name, std::uint64_t out, const ConvolutionShape& shape,
                   bool bias);
  void convolution(const std::string& name, std::uint64_t out, std::uint64_t size,
                   std::uint64_t stride, bool bias) {
    convolution(name, out, ConvolutionShape{size, size, stride, false}, bias);
  }
  // A convolution without a bias, with a batch norm of its input in front of it.
  void normed_convolution(const std::string& name, std::uint64_t out, std::uint64_t size);
  // A batch norm of the current channels, behind the last layer.
  void batch_norm(const std::string& name);
  void linear(const std::string& name, std::uint64_t out, std::uint64_t in);

 private:
  void add_norm(Layer& layer, const std::string& name);
  void add_weights(Layer& layer, const std::string& name, std::uint64_t out,
                   const ConvolutionShape& shape);

  Model& model_;
  std::uint64_t channels_ = 3;
  std::uint64_t width_;
};

// Inception-v4 (Szegedy et al., 2017), 149 convolutions.
void inception_v4(Network& net, std::uint64_t classes);

}  // namespace ghostrank
