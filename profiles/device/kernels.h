// How long one kernel takes on a GPU whose profile says how many multiprocessors it has.
//
// A product that the profile has measured (profiles/device/measured_kernels.h) takes the measured
// time. Any other m x n x k is cut into tiles of the output; a multiprocessor works on one tile at
// a time, so a product takes whole waves of tiles:
//
//   waves = ceil(tiles / multiprocessors)
//   time  = waves * 2 * tile_m * tile_n * (k + kFill) / (peak per multiprocessor * share of the
//   peak)
//
// kFill is the loop over k that filling and draining a tile costs. The fastest of a few tile shapes
// counts; a product never takes less than its bytes through memory. Sizes that are no multiple of
// eight elements cannot be loaded in whole vectors, and run at kUnaligned of the speed. Where other
// sizes were measured, the time is corrected by how far the formula is off at the nearest of them.
// Every other kernel takes the bytes that it moves, along the measured curve of its kind if there
// is one. Each kernel adds the GPU's time to start it.
//
// Units: seconds, bytes, FLOPs (a multiply-add is 2). Threading: plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "profiles/job/job.h"

namespace ghostrank {

// How a product's operands lie in memory, row by row: those of the passes of a linear layer
// y = x W^T, whose weight W has `out` rows of `in`.
enum class Operands : std::uint8_t {
  forward,  // y  = x W^T:  m = tokens, n = out, k = in; also batches of queries times keys
  input,    // dx = dy W:   m = tokens, n = in, k = out; also scores times values
  weight    // dW = dy^T x: m = out, n = in, k = tokens
};
inline constexpr std::pair<Operands, std::string_view> kOperands[] = {
    {Operands::forward, "forward"}, {Operands::input, "input"}, {Operands::weight, "weight"}};

// Kinds of kernels that take the bytes that they move. A kind that was not measured moves them like
// `elementwise`.
enum class MemoryKernel : std::uint8_t {
  elementwise,    // copy, add, bias, activation, dropout, rotary, and their backward
  norm,           // layer or RMS norm
  norm_backward,  // its gradient of the input, and of its weights where that is the same kernel
  column_sum,     // gradients of biases and of a norm's weights
  softmax,        // also its backward
  loss,           // log-softmax and cross-entropy, also their backward
  embedding,      // lookup, and its backward
  optimizer       // a step over all parameters
};
inline constexpr std::pair<MemoryKernel, std::string_view> kMemoryKernels[] = {
    {MemoryKernel::elementwise, "elementwise"},
    {MemoryKernel::norm, "norm"},
    {MemoryKernel::norm_backward, "norm_backward"},
    {MemoryKernel::column_sum, "column_sum"},
    {MemoryKernel::softmax, "softmax"},
    {MemoryKernel::loss, "loss"},
    {MemoryKernel::embedding, "embedding"},
    {MemoryKernel::optimizer, "optimizer"}};

// Attention of `heads` query heads of each sample in one kernel that keeps the scores on the chip
// (FlashAttention, cuDNN). `causal`: the masked half is skipped.
struct FusedAttention {
  double batch = 1;                 // samples
  double heads = 1, key_heads = 1;  // of queries; of keys and values
  double queries = 1, keys = 1;     // positions
  double width = 1;                 // elements of a head
  bool causal = true, backward = false;

  double flops() const;
  double bytes(double element) const;  // operands, results, and their gradients
};

// Kernels one after the other: the GPU's time, and how many the host has to launch.
struct Kernels {
  double seconds = 0;
  int launches = 0;
  Kernels& operator+=(const Kernels& other) {
    seconds += other.seconds;
    launches += other.launches;
    return *this;
  }
  friend Kernels operator+(Kernels a, const Kernels& b) { return a += b; }
};

class KernelModel {
 public:
  // `peak_tflops`: of the operands' type. The device must have multiprocessors.
  KernelModel(const DeviceProfile& device, double peak_tflops);

  // `batch` products of m x k with k x n; `element`: bytes of an operand's element.
  Kernels product(double m, double n, double k, double batch, double element,
                  Operands operands = Operands::forward) const;
  Kernels memory(double bytes, MemoryKernel kind = MemoryKernel::elementwise) const;
  Kernels fused_attention(const FusedAttention& shape, double element) const;

 private:
  double peak_ = 0;       // FLOP/s, what products reach
  double bandwidth_ = 0;  // bytes/s, what kernels reach
  double multiprocessors_ = 0, start_ = 0;
};

}  // namespace ghostrank
