// The kernels that bring the operands of a linear layer into fp8, as Transformer Engine launches
// them: by the bytes that each moves.
//
//   forward  the input is cast, unless the norm before it writes fp8 itself
//   input    the gradient of the output is cast
//   weight   what was gathered in fp8 is transposed
//   once     a step: the weight is cast
//
// Before Blackwell, tensor cores multiply fp8 only along rows, so each operand is there as it is
// and transposed; a cast writes both at once, but all-gathers carry no transposed data. With
// current scaling (tensorwise) another kernel reads a tensor for its largest element before the
// cast, and norms write no fp8.
//
// Units: bytes, elements. Threading: pure functions.
#pragma once

#include <vector>

namespace ghostrank {

struct Fp8Scaling {
  bool transposes = true;  // each operand is there transposed, too
  bool current = false;    // scales of the tensor itself, not of earlier passes
  double copies() const { return transposes ? 2 : 1; }  // of a byte, that a cast writes
};

// A linear layer on one rank: rows of products, and those that the rank has before a gather.
struct LinearShape {
  double rows = 0, own_rows = 0;
  double in = 0, out = 0;         // width of its rows, of its results
  bool gathers_input = false;     // before the forward; else all of its rows are here
  bool gathers_gradient = false;  // of its results, before the backward
  bool behind_norm = false;       // a norm in the same module gives its input
};

struct Fp8Casts {
  std::vector<double> forward, input, weight, once;
};
// `element`: bytes of an element outside the products.
Fp8Casts fp8_casts(const Fp8Scaling& scaling, const LinearShape& layer, double element);

// Whether the cast of a gradient also sums it over its rows, for a bias.
inline bool cast_sums_rows(const Fp8Scaling& scaling, const LinearShape& layer) {
  return !scaling.current && !layer.gathers_gradient;
}

}  // namespace ghostrank
