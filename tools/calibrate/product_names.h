// What the names of matrix products' kernels say: those of cuBLAS, cuBLASLt and CUTLASS.
//
// Threading: pure functions.
#pragma once

#include <optional>
#include <string_view>

#include "profiles/device/kernels/shapes.h"

namespace ghostrank {

struct ProductName {
  bool is_product = false;
  bool adds_parts = false;           // adds the parts of a product that was split over k
  std::optional<OperandType> type;   // empty: the name does not say
  std::optional<Operands> operands;  // likewise
};

ProductName product_name(std::string_view kernel);

}  // namespace ghostrank
