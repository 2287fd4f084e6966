// Operators of PyTorch with the sizes of their operands, as profilers record them, and the rows of
// the kernel tables to which the kernels that they launched belong.
//
// Units: bytes of elements, microseconds. Threading: plain values.
#pragma once

#include <string>
#include <vector>

#include "tools/calibrate/recorded_kernels.h"

namespace ghostrank {

// An operand of an op: a tensor, or a list of tensors, whose elements are added up.
struct TorchOperand {
  std::vector<double> dims, strides;  // without strides: the kernel's name may say how it lies
  double elements = 0;
  std::string type;  // "c10::BFloat16"
};

struct TorchOp {
  std::string name;  // "aten::mm"
  std::vector<TorchOperand> operands;
  std::vector<std::string> values;  // of operands that are no tensors: "True", "0.1"
};

// Product of the sizes; 0: no sizes.
double elements_of(const std::vector<double>& dims);

// Adds the kernels that an op launched to `out`. Sums the times of one row's kernels, since
// attention's backward has several, and the optimizer one for each chunk of tensors.
void take_op(const TorchOp& op, const std::vector<const RecordedKernel*>& kernels, KernelRows& out);

}  // namespace ghostrank
