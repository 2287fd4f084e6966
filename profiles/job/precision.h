// The types of a model's parameters, gradients and products.
//
// Threading: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "collectives/common/data_type.h"

namespace ghostrank {

// How the scales of fp8 tensors are found, in Megatron-LM's words (--fp8-recipe): delayed takes the
// largest elements of earlier passes, tensorwise those of the tensor itself.
enum class Fp8Recipe : std::uint8_t { delayed, tensorwise };

// Products of linear layers in fp8, whose weights and results are in Precision::parameters.
struct Fp8 {
  Fp8Recipe recipe = Fp8Recipe::delayed;
  bool tp_only_amax = false;  // delayed: replicas keep scales of their own
};

struct Precision {
  DataType parameters = DataType::float32;
  DataType gradients = DataType::float32;
  std::string optimizer = "adam";  // adam | sgd
  std::optional<Fp8> fp8 = {};     // empty: all products are in the parameters' type
};

}  // namespace ghostrank
