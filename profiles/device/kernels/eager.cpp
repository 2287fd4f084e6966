#include "profiles/device/kernels/eager.h"

#include <initializer_list>

#include "profiles/device/kernels/element_bytes.h"
#include "profiles/real.h"

namespace ghostrank {
namespace {

class EagerWriter {
 public:
  EagerWriter(const KernelModel& device, const EagerShape& shape)
      : device_(device),
        shape_(shape),
        e_(shape.layer.element),
        s_(shape.stored),
        tokens_(real(shape.layer.tokens)),
        hidden_(real(shape.layer.hidden)),
        rows_(tokens_ * hidden_) {}

  KernelTimes layer() {
    const LayerShape& l = shape_.layer;
    const double query = real(l.query), key = real(l.key), ffn = real(l.ffn);
    norm();
    if (shape_.merged_qkv)
      products_of_hidden({query + 2 * key});
    else
      products_of_hidden({query, key, key});
    if (l.rotary)
      for (const double width : {query, key}) rotation(width);
    core();
    linear(query, hidden_);
    residual();
    norm();
    activation(ffn);
    linear(ffn, hidden_);
    residual();
    return times_;
  }

  // One kernel for all operations between two products, forward and backward, but for column sums.
  // torch.compile leaves the rotation, a product of complex numbers, to PyTorch's own kernels.
  KernelTimes compiled_layer() {
    const LayerShape& l = shape_.layer;
    const double query = real(l.query), key = real(l.key), ffn = real(l.ffn);
    const double mask = l.dropout ? kMaskByte : 0, inner = tokens_ * ffn;
    const int ways = shape_.merged_qkv ? 1 : 3, gates = l.gated ? 2 : 1;
    in_compiled_layer_ = true;
    fused_norm(0, ways);
    if (shape_.merged_qkv) {
      linear(hidden_, query + 2 * key);
    } else {
      for (const double out : {query, key, key}) linear(hidden_, out);
    }
    if (l.rotary)
      for (const double width : {query, key}) rotation(width);
    core();
    linear(query, hidden_);
    fused_norm(e_ + s_ + mask, gates);
    for (int i = 0; i < gates; ++i) linear(hidden_, ffn);
    pointwise((gates + 1) * e_, (2 * gates + 1) * e_, inner);
    linear(ffn, hidden_);
    times_.forward += device_.memory((e_ + 2 * s_ + mask) * rows_);
    if (l.dropout || casts()) times_.input += device_.memory((s_ + e_ + mask) * rows_);
    return times_;
  }

  KernelTimes embedding(double vocabulary, double positions) {
    lookup(tokens_, vocabulary);
    if (positions == 0) return times_;
    const double samples = tokens_ / real(shape_.layer.queries);
    lookup(tokens_ / samples, positions);
    times_.forward += device_.memory(3 * s_ * rows_);
    times_.weight += device_.memory(s_ * rows_, MemoryKernel::column_sum);
    dropout(s_);
    return times_;
  }

  // To float32; log-softmax; its mean at the targets. Backward: zeros, at the targets a gradient;
  // log-softmax; from float32.
  KernelTimes head(double vocabulary) {
    const double logits = tokens_ * vocabulary;
    norm();
    cast_hidden();
    product(hidden_, vocabulary);
    times_.forward += widening(e_, kFloat, logits);
    times_.forward += device_.memory(2 * kFloat * logits, MemoryKernel::loss);
    pointwise(2 * kFloat, 2 * kFloat, tokens_);
    times_.input += device_.memory(kFloat * logits);
    times_.input += device_.memory(3 * kFloat * logits, MemoryKernel::loss);
    times_.input += device_.memory((kFloat + e_) * logits);
    return times_;
  }

 private:
  bool casts() const { return s_ > e_; }

  void pointwise(double forward, double backward, double elements) {
    times_.forward += device_.memory(forward * elements);
    times_.input += device_.memory(backward * elements);
  }

  // A copy to a type that is larger, or the same.
  Kernels widening(double from, double to, double elements) const {
    return device_.memory((from + to) * elements, to > from && !in_compiled_layer_
                                                      ? MemoryKernel::mixed
                                                      : MemoryKernel::elementwise);
  }
  Kernels narrowing(double from, double to, double elements) const {
    return device_.memory((from + to) * elements);
  }

  // The input's gradient, then the weights': two kernels backward.
  void norm() {
    times_.forward += device_.memory(2 * s_ * rows_, MemoryKernel::norm, s_);
    times_.input += device_.memory(3 * s_ * rows_, MemoryKernel::norm_backward, s_);
    times_.weight += device_.memory(2 * s_ * rows_, MemoryKernel::column_sum);
  }

  // A norm. It also adds a product to the hidden states if `added`, the bytes that this moves per
  // element, is not 0. Backward, it adds the gradients of `products` products and of the residual.
  void fused_norm(double added, int products) {
    times_.forward += device_.memory((s_ + e_ + added) * rows_);
    times_.input += device_.memory((products * e_ + 3 * s_ + added) * rows_);
    times_.weight += device_.memory((products * e_ + s_) * rows_, MemoryKernel::column_sum);
  }

  // Products of a norm's output. Backward, their gradients of that output are added up.
  void products_of_hidden(std::initializer_list<double> outs) {
    for (const double out : outs) {
      cast_hidden();
      linear(hidden_, out);
    }
    for (std::size_t i = 1; i < outs.size(); ++i) times_.input += device_.memory(3 * s_ * rows_);
  }

  // The products to the inner width of the feed-forward part, and the activation.
  void activation(double ffn) {
    const double inner = tokens_ * ffn;
    if (shape_.layer.gated)
      products_of_hidden({ffn, ffn});
    else
      products_of_hidden({ffn});
    pointwise(2 * e_, 3 * e_, inner);
    if (!shape_.layer.gated) return;
    // Multiplies by the other product; backward takes a kernel for each of the two gradients.
    pointwise(3 * e_, 3 * e_, inner);
    times_.input += device_.memory(3 * e_ * inner);
  }

  void linear(double in, double out) {
    product(in, out);
    if (!shape_.layer.bias) return;
    times_.weight += device_.memory(e_ * tokens_ * out, MemoryKernel::column_sum);
    cast_parameter(out);
  }

  void product(double in, double out) {
    times_.forward += device_.product(tokens_, out, in, 1, e_, Operands::forward);
    times_.input += device_.product(tokens_, in, out, 1, e_, Operands::input);
    times_.weight += device_.product(out, in, tokens_, 1, e_, Operands::weight);
    cast_parameter(in * out);
  }

  void cast_parameter(double elements) {
    if (!casts()) return;
    times_.forward += narrowing(s_, e_, elements);
    times_.weight += widening(e_, s_, elements);
  }

  // Casts hidden states to the product's type; backward casts their gradient back.
  void cast_hidden() {
    if (!casts()) return;
    times_.forward += narrowing(s_, e_, rows_);
    times_.input += widening(e_, s_, rows_);
  }

  // To float32, a product of complex numbers, and back. Backward also conjugates the turns.
  void rotation(double width) {
    const LayerShape& l = shape_.layer;
    const double elements = tokens_ * width;
    const Kernels there_and_back = widening(e_, kFloat, elements) +
                                   device_.memory(2 * kFloat * elements) +
                                   narrowing(kFloat, e_, elements);
    times_.forward += there_and_back;
    times_.input +=
        there_and_back + device_.memory(2 * kFloat * real(l.queries) * real(l.head_width));
  }

  void core() {
    const LayerShape& l = shape_.layer;
    FusedAttention core;
    core.batch = tokens_ / real(l.queries);
    core.heads = real(l.heads);
    core.key_heads = real(l.key) / real(l.head_width);
    core.queries = real(l.queries);
    core.keys = real(l.keys);
    core.width = real(l.head_width);
    core.dropout = l.dropout;
    times_.forward += device_.fused_attention(core, e_);
    core.backward = true;
    times_.input += device_.fused_attention(core, e_);
    // The gradients of queries, keys and values become one tensor again.
    if (shape_.merged_qkv)
      times_.input += device_.memory(2 * e_ * tokens_ * (real(l.query) + 2 * real(l.key)));
  }

  void dropout(double element) {
    if (!shape_.layer.dropout) return;
    const double bytes = (2 * element + kMaskByte) * rows_;
    times_.forward += device_.memory(bytes, MemoryKernel::dropout);
    times_.input += device_.memory(bytes);
  }

  // Backward, the gradients of the residual and of the branch are added.
  void residual() {
    dropout(e_);
    const double sum = (2 * s_ + e_) * rows_;
    times_.forward +=
        device_.memory(sum, casts() ? MemoryKernel::mixed : MemoryKernel::elementwise);
    times_.input += device_.memory(3 * s_ * rows_);
    // The gradient of the branch, in the product's type.
    if (casts()) times_.input += narrowing(s_, e_, rows_);
  }

  // Backward: zeros for every row, then the rows that were looked up.
  void lookup(double rows, double of) {
    times_.forward += device_.memory(2 * s_ * rows * hidden_, MemoryKernel::embedding);
    times_.weight += device_.memory(s_ * of * hidden_);
    times_.weight += device_.memory(2 * s_ * rows * hidden_, MemoryKernel::embedding_backward);
  }

  const KernelModel& device_;
  const EagerShape& shape_;
  const double e_, s_, tokens_, hidden_, rows_;
  bool in_compiled_layer_ = false;  // where every kernel is vectorised
  KernelTimes times_;
};

}  // namespace

KernelTimes eager_layer(const KernelModel& device, const EagerShape& shape) {
  EagerWriter writer(device, shape);
  return shape.compiled ? writer.compiled_layer() : writer.layer();
}

KernelTimes eager_embedding(const KernelModel& device, const EagerShape& shape,
                            std::uint64_t vocabulary, std::uint64_t positions) {
  return EagerWriter(device, shape).embedding(real(vocabulary), real(positions));
}

KernelTimes eager_head(const KernelModel& device, const EagerShape& shape,
                       std::uint64_t vocabulary) {
  return EagerWriter(device, shape).head(real(vocabulary));
}

// Of AdamW: decay, both moments, root, correction, epsilon, step. Of SGD: momentum in two, step.
Kernels eager_optimizer(const KernelModel& device, const EagerOptimizer& step) {
  Kernels kernels;
  const auto touch = [&](double elements) {
    kernels += device.memory(elements * step.stored * step.parameters,
                             step.foreach ? MemoryKernel::foreach : MemoryKernel::optimizer,
                             step.foreach ? 0 : step.stored);
  };
  if (step.clips)
    for (const double elements : {1, 2}) touch(elements);  // read; scaled
  if (!step.foreach)
    touch(step.adam ? 7 : 5);
  else if (step.adam)
    for (const double elements : {2, 3, 2, 3, 2, 2, 2, 4}) touch(elements);
  else
    for (const double elements : {2, 3, 3}) touch(elements);
  return kernels;
}

}  // namespace ghostrank
