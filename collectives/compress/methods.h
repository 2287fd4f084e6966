// The methods in this folder, one file each; see collectives/compressor.h.
//
// Costs: GRACE published ResNet-50 at 10 Gb/s on V100s (8 workers, 128 images each, 161 tensors of
// 25.56 million elements), and for each method an upper-bound row, which moves the same payloads
// without compressing. The difference of their step times is what fitted() takes. One model cannot
// tell the cost of a tensor from that of its elements, so a rule does: the time is charged per
// tensor if a tensor's mean is at most that of kMostLaunches launches, or if the method consists of
// many small kernels; else it is charged per element. Decompressing writes or adds at 900 GB/s and
// launches one kernel, once for every payload: a lower bound.
//
// Threading: constant data.
#pragma once

#include "collectives/compressor.h"

namespace ghostrank {

extern const Compressor kFp16, kTopK, kRandomK, kThreshold, kDgc, kAdaq, kRedSync, kGaussianKsgd,
    kSidcoE, kSidcoP, kSidcoGp, kQsgd, kTernGrad, kSignSgd, kSignum, kEfSignSgd, kOneBit, kNatural,
    kEightBit, kSketch, kPowerSgd, kInceptionn, kBf16, kDithering;

inline constexpr double kWritesTensor = 4 / 900.0;  // ns an element, at 900 GB/s
inline constexpr double kLaunchUs = 5;              // of one kernel

inline constexpr double kMostLaunches = 50;  // per tensor: some, and a few for each of 8 payloads

enum class LaunchedKernels { few, many_small };

// From the milliseconds that a step of that ResNet-50 takes longer than its upper bound.
constexpr CompressionCost fitted(double ms, LaunchedKernels kernels = LaunchedKernels::few) {
  constexpr double kElements = 25.559081e6, kTensors = 161, kPayloads = 8;
  const double decompress =
      kPayloads * (kElements * kWritesTensor * 1e-6 + kTensors * kLaunchUs * 1e-3);
  const double compress = ms > decompress ? ms - decompress : 0;
  const double us_of_tensor = compress / kTensors * 1e3;
  const bool launches =
      kernels == LaunchedKernels::many_small || us_of_tensor <= kMostLaunches * kLaunchUs;
  return {launches ? 0 : compress / kElements * 1e6, kWritesTensor, launches ? us_of_tensor : 0,
          kLaunchUs,
          "fitted to GRACE's ResNet-50 on V100s at 10 Gb/s; decompressing: 900 GB/s and a launch "
          "a payload, a lower bound"};
}
// For methods without such a difference: passes over the tensor, of 4 bytes an element, and
// launches.
constexpr CompressionCost by_passes(int passes, int launches) {
  return {passes * kWritesTensor, kWritesTensor, launches * kLaunchUs, kLaunchUs,
          "passes over the tensor at 900 GB/s and 5 us a launch: a lower bound"};
}

}  // namespace ghostrank
