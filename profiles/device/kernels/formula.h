// How long a kernel takes on a GPU by a formula of a few numbers.
//
// A matrix product m x n x k is cut into tiles of the output; a multiprocessor works on one tile at
// a time, so a product takes whole waves of tiles:
//
//   waves = ceil(tiles / multiprocessors)
//   time  = waves * 2 * tile_m * tile_n * (k + fill)
//           / (flops_per_second / multiprocessors * share of the tile)
//
// `fill` is the cost of filling and draining a tile, as steps of the loop over k. The fastest tile
// shape counts; a product takes no less time than its bytes. Sizes that are no multiple of eight
// elements do not load in whole vectors, and run at kUnaligned of the speed. Fused attention takes
// the longer of its FLOPs' and its bytes' times, others their bytes' time. Each adds `start`.
//
// Units: seconds, bytes, FLOPs. Threading: pure functions.
#pragma once

#include <span>

#include "profiles/device/kernels/shapes.h"
#include "profiles/job/job.h"

namespace ghostrank {

struct KernelFormula {
  double flops_per_second = 0;  // that products reach
  double bytes_per_second = 0;  // that other kernels reach
  double multiprocessors = 1, start = 0;
  double fill = 256;
  bool fine_tiles = false;  // of more sizes, as Hopper has them

  double product(const ProductShape& shape, double element) const;  // `element`: of an operand
  double memory(double bytes) const;
  double attention(const FusedAttention& shape, double element) const;
};

// Whether all sizes are multiples of eight elements.
bool in_whole_vectors(const ProductShape& shape);

// With the shares that the device states. `peak_tflops`: of the operands' type.
KernelFormula stated_formula(const DeviceProfile& device, double peak_tflops);

struct MeasuredProduct {
  ProductShape shape;
  double seconds = 0;
};

// `formula` with the flops_per_second, fill and tiles that come nearest to the products: the least
// mean distance of logarithms. Products of one type; at least one.
KernelFormula fitted_formula(KernelFormula formula, std::span<const MeasuredProduct> products,
                             double element);

}  // namespace ghostrank
