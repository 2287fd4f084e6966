// The modules of a model, as PyTorch would hold its tensors: a layer's convolution, norm or linear
// map with its weight and bias. Schedulers of communication fuse whole modules and hook into them.
//
// A module is a run of tensors whose names differ only in a last part that is weight, bias, w or b;
// any other tensor is a module of its own, and so is a measured layer. The time of a layer is
// shared among its modules in proportion to the elements of their matrices, because matrix products
// take it; the sums stay exact. Threading: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "profiles/model/model.h"
#include "profiles/planners/shared/data_parallel.h"

namespace ghostrank {

struct Module {
  std::string name;                    // "layer1.0.conv1", "layer1.0.conv1.bn1"
  std::vector<std::uint64_t> tensors;  // elements of each, in registration order
  std::uint64_t numel = 0;
  Picoseconds forward = 0, backward = 0;  // of a rank's samples of a step
  Picoseconds optimizer = 0;              // the step over its parameters
  // Of a linear map or a convolution; 0 for all others. A convolution's inputs are the elements of
  // a patch, and it has `positions` of them per sample.
  std::uint64_t inputs = 0, outputs = 0;
  bool bias = false;
  double positions = 1;
};

// In registration order, which is the order of the forward.
std::vector<Module> modules_of(const Model& model, const StepTimes& times);

// A tensor as WFBP and its successors see it: one of a list in registration order.
struct ReadyTensor {
  std::uint64_t numel = 0;
  std::size_t module = 0;  // its gradient is ready when this module's backward has ended
  // At a module's last tensor: its own, and that of the modules without tensors behind it.
  Picoseconds backward = 0;
};
std::vector<ReadyTensor> tensors_of(std::span<const Module> modules);

}  // namespace ghostrank
