// Kernels by what their time depends on: products by size, type and the layout of their operands,
// kernels that move bytes by kind, attention by its shape.
//
// Units: elements, bytes, FLOPs (a multiply-add is 2). Threading: plain values.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>
#include <utility>

namespace ghostrank {

// Of a product's operands. tf32: float32 in memory, rounded on the way to the tensor cores.
enum class OperandType : std::uint8_t { bf16, fp16, tf32, fp32, fp8 };
inline constexpr std::pair<OperandType, std::string_view> kOperandTypes[] = {
    {OperandType::bf16, "bf16"},
    {OperandType::fp16, "fp16"},
    {OperandType::tf32, "tf32"},
    {OperandType::fp32, "fp32"},
    {OperandType::fp8, "fp8"}};

// How a product's operands lie in memory, row by row: those of the passes of a linear layer
// y = x W^T, whose weight W has `out` rows of `in`.
enum class Operands : std::uint8_t {
  forward,  // y  = x W^T:  m = tokens, n = out, k = in; also batches of queries times keys
  input,    // dx = dy W:   m = tokens, n = in, k = out; also scores times values
  weight    // dW = dy^T x: m = out, n = in, k = tokens
};
inline constexpr std::pair<Operands, std::string_view> kOperands[] = {
    {Operands::forward, "forward"}, {Operands::input, "input"}, {Operands::weight, "weight"}};

// `batch` products of m x k with k x n.
struct ProductShape {
  double m = 1, n = 1, k = 1, batch = 1;
  OperandType type = OperandType::bf16;
  Operands operands = Operands::forward;

  double flops() const { return 2 * m * n * k * batch; }
  friend auto operator<=>(const ProductShape&, const ProductShape&) = default;
};

// Kinds of kernels whose time follows from the bytes that they move. A kind that was not measured
// takes as long as `elementwise`.
enum class MemoryKernel : std::uint8_t {
  elementwise,    // copy, add, bias, activation, rotary, and their backward
  mixed,          // likewise, but reads a shorter type than it writes: not in whole vectors
  dropout,        // forward, which draws random numbers
  norm,           // layer or RMS norm
  norm_backward,  // its gradient of the input, and of its weights where that is the same kernel
  column_sum,     // gradients of biases and of a norm's weights
  softmax,        // also its backward
  loss,           // log-softmax and cross-entropy, also their backward
  embedding,      // lookup
  embedding_backward,  // sorts the ids and adds up the rows of each
  optimizer,           // a step over all parameters in one kernel
  foreach              // one operation over all parameters, in chunks of tensors
};
inline constexpr std::pair<MemoryKernel, std::string_view> kMemoryKernels[] = {
    {MemoryKernel::elementwise, "elementwise"},
    {MemoryKernel::mixed, "mixed"},
    {MemoryKernel::dropout, "dropout"},
    {MemoryKernel::norm, "norm"},
    {MemoryKernel::norm_backward, "norm_backward"},
    {MemoryKernel::column_sum, "column_sum"},
    {MemoryKernel::softmax, "softmax"},
    {MemoryKernel::loss, "loss"},
    {MemoryKernel::embedding, "embedding"},
    {MemoryKernel::embedding_backward, "embedding_backward"},
    {MemoryKernel::optimizer, "optimizer"},
    {MemoryKernel::foreach, "foreach"}};

// Attention of `heads` query heads of each sample in one kernel that keeps the scores on the chip
// (FlashAttention, cuDNN). `causal`: the masked half is skipped.
struct FusedAttention {
  double batch = 1;                 // samples
  double heads = 1, key_heads = 1;  // of queries; of keys and values
  double queries = 1, keys = 1;     // positions
  double width = 1;                 // elements of a head
  bool causal = true, backward = false;
  bool dropout = false;  // of scores

  double flops() const;
  double bytes(double element) const;  // operands, results, and their gradients
  // Kernels work on whole tiles of a head's width: cuDNN takes a width of 80 for 128.
  double width_in_tiles() const;
  friend auto operator<=>(const FusedAttention&, const FusedAttention&) = default;
};

}  // namespace ghostrank
