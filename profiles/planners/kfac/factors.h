// The Kronecker factors of a model: of every linear map and convolution, A is the covariance of its
// inputs and G that of the gradients of its outputs.
//
//   linear in -> out        A: in (+ 1 with a bias)            G: out
//   convolution k x k       A: in k k (+ 1 with a bias)        G: out
//
// Both are symmetric, so calls carry the upper triangle: d (d + 1) / 2 elements, fp32. A row of the
// product that makes a factor is a sample, and of a convolution a position of the output, too (the
// tokens of a linear map's input are averaged). Embeddings, the projection to the vocabulary, norms
// and experts have no factors, nor have the cells of an LSTM or the layers of GPT-2, which PyTorch
// holds as transposed 1-D convolutions. The rules are those of the published code of D-, SPD- and
// DP-KFAC (kfac_pytorch).
//
// Units: elements; FLOPs (a multiply-add is 2). Threading: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "profiles/model/model.h"
#include "profiles/planners/schedulers/modules.h"

namespace ghostrank {

struct Factor {
  std::string name;        // "A of layer1.0.conv1"
  std::size_t module = 0;  // index into the modules
  std::uint64_t dimension = 0;
  double rows = 0;  // of a rank's step

  std::uint64_t packed() const { return dimension * (dimension + 1) / 2; }
  double elements() const {
    return static_cast<double>(dimension) * static_cast<double>(dimension);
  }
  double flops() const { return 2 * rows * elements(); }
};

// A and G of the first layer, of the second, and so on: those of layer l are 2 l and 2 l + 1.
std::vector<Factor> factors_of(const Model& model, std::span<const Module> modules,
                               int samples_per_rank);

}  // namespace ghostrank
