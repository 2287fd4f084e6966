// How long one kernel takes on a GPU whose profile says how many multiprocessors it has.
//
// A matrix product m x n x k is cut into tiles of the output; a multiprocessor works on one tile at
// a time, so a product takes whole waves of tiles:
//
//   waves = ceil(tiles / multiprocessors)
//   time  = waves * 2 * tile_m * tile_n * (k + kFill) / (peak per multiprocessor * share of the
//   peak)
//
// kFill is the loop over k that filling and draining a tile costs. The fastest of a few tile shapes
// counts; a product never takes less than its bytes through memory. Sizes that are no multiple of
// eight elements cannot be loaded in whole vectors, and run at kUnaligned of the speed. Every other
// kernel takes the bytes that it moves. Each kernel adds the GPU's time to start it.
//
// Units: seconds, bytes, FLOPs (a multiply-add is 2). Threading: plain values.
#pragma once

#include "profiles/job/job.h"

namespace ghostrank {

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
  Kernels product(double m, double n, double k, double batch, double element) const;
  Kernels memory(double bytes) const;
  // Attention in one kernel that keeps the scores on the chip (FlashAttention).
  Kernels fused_attention(double flops, double bytes) const;

 private:
  double peak_ = 0;       // FLOP/s, what products reach
  double bandwidth_ = 0;  // bytes/s, what kernels reach
  double multiprocessors_ = 0, start_ = 0;
};

}  // namespace ghostrank
