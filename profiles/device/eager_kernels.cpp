#include "profiles/device/eager_kernels.h"

#include <initializer_list>

namespace ghostrank {
namespace {

double real(std::uint64_t n) { return static_cast<double>(n); }

constexpr double kMaskByte = 1;  // of dropout, per element
constexpr double kFloat = 4;     // bytes; rotary positions and the loss compute in float32

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
      products(hidden_, {query + 2 * key});
    else
      products(hidden_, {query, key, key});
    if (l.rotary)
      for (const double width : {query, key}) rotation(width);
    core();
    products(query, {hidden_});
    residual();
    norm();
    if (l.gated) {
      products(hidden_, {ffn, ffn});
      pointwise(2 * e_, 3 * e_, tokens_ * ffn);      // the gate's activation
      pointwise(3 * e_, 2 * 3 * e_, tokens_ * ffn);  // times the other product; two gradients
    } else {
      products(hidden_, {ffn});
      pointwise(2 * e_, 3 * e_, tokens_ * ffn);
    }
    products(ffn, {hidden_});
    residual();
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
    products(hidden_, {vocabulary}, false);
    times_.forward += device_.memory((e_ + kFloat) * logits);
    times_.forward += device_.memory(2 * kFloat * logits, MemoryKernel::loss);
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

  // The input's gradient, then the weights': two kernels backward.
  void norm() {
    times_.forward += device_.memory(2 * s_ * rows_, MemoryKernel::norm);
    times_.input += device_.memory(3 * s_ * rows_, MemoryKernel::norm_backward);
    times_.weight += device_.memory(2 * s_ * rows_, MemoryKernel::column_sum);
  }

  // Products of the same rows, `in` wide, to rows as wide as `outs` says.
  void products(double in, std::initializer_list<double> outs, bool biased = true) {
    for (const double out : outs) {
      product(in, out);
      if (biased && shape_.layer.bias)
        times_.weight += device_.memory(e_ * tokens_ * out, MemoryKernel::column_sum);
    }
    for (std::size_t i = 1; i < outs.size(); ++i)
      times_.input += device_.memory(3 * s_ * tokens_ * in);
  }

  void product(double in, double out) {
    times_.forward += device_.product(tokens_, out, in, 1, e_, Operands::forward);
    times_.input += device_.product(tokens_, in, out, 1, e_, Operands::input);
    times_.weight += device_.product(out, in, tokens_, 1, e_, Operands::weight);
    if (!casts()) return;
    const Kernels weight = device_.memory((s_ + e_) * in * out);
    times_.forward += weight;
    times_.weight += weight;
  }

  // To float32, a complex product, and back.
  void rotation(double width) {
    for (const double bytes : {e_ + kFloat, 2 * kFloat, kFloat + e_})
      pointwise(bytes, bytes, tokens_ * width);
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
    times_.forward += device_.fused_attention(core, e_);
    core.backward = true;
    times_.input += device_.fused_attention(core, e_);
  }

  void dropout(double element) {
    if (shape_.layer.dropout) pointwise(2 * element + kMaskByte, 2 * element + kMaskByte, rows_);
  }

  // Backward, the gradients of both ways meet.
  void residual() {
    dropout(e_);
    pointwise(2 * s_ + e_, 3 * s_, rows_);
  }

  // Backward: zeros for every row, then the rows that were looked up.
  void lookup(double rows, double of) {
    times_.forward += device_.memory(2 * s_ * rows * hidden_, MemoryKernel::embedding);
    times_.weight += device_.memory(s_ * of * hidden_);
    times_.weight += device_.memory(2 * s_ * rows * hidden_, MemoryKernel::embedding);
  }

  const KernelModel& device_;
  const EagerShape& shape_;
  const double e_, s_, tokens_, hidden_, rows_;
  KernelTimes times_;
};

}  // namespace

KernelTimes eager_layer(const KernelModel& device, const EagerShape& shape) {
  return EagerWriter(device, shape).layer();
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
    kernels += device.memory(elements * step.stored * step.parameters, MemoryKernel::optimizer);
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
