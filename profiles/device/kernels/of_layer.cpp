#include "profiles/device/kernels/of_layer.h"

#include "profiles/device/kernels/element_bytes.h"
#include "profiles/real.h"

namespace ghostrank {
namespace {

constexpr double kFp8 = 1;       // bytes
constexpr double kMatrices = 4;  // the fused softmax takes score matrices in batches of so many

class LayerWriter {
 public:
  LayerWriter(const KernelModel& device, const LayerShape& shape)
      : device_(device),
        shape_(shape),
        e_(shape.element),
        tokens_(real(shape.tokens)),
        hidden_(real(shape.hidden)),
        query_(real(shape.query)),
        key_(real(shape.key)),
        own_tokens_(real(shape.own_tokens)),
        rows_(real(shape.own_tokens) * hidden_) {}

  // A product of the tokens' rows, `in` wide, to rows `out` wide.
  KernelTimes product(double in, double out) const {
    KernelTimes times;
    times.forward = device_.product(tokens_, out, in, 1, e_, Operands::forward);
    times.input = device_.product(tokens_, in, out, 1, e_, Operands::input);
    times.weight = weight(device_.product(out, in, tokens_, 1, e_, Operands::weight), e_, in, out);
    return times;
  }

  // Norm, then a column-parallel product. Backward also adds the residual's gradient.
  KernelTimes column(double out) const {
    const LinearShape layer{.rows = tokens_,
                            .own_rows = own_tokens_,
                            .in = hidden_,
                            .out = out,
                            .gathers_input = gathers(),
                            .behind_norm = true};
    KernelTimes times = linear(layer);
    times.forward += norm(shape_.fp8 && !shape_.fp8->current ? kFp8 : e_);
    times.input += device_.memory(3 * e_ * rows_, MemoryKernel::norm_backward, e_) +
                   device_.memory(3 * e_ * rows_);
    times.weight += device_.memory(2 * e_ * rows_, MemoryKernel::column_sum);
    if (sums_bias(layer))
      times.weight += device_.memory(e_ * tokens_ * out, MemoryKernel::column_sum);
    return times;
  }

  // A row-parallel product, then bias, dropout and the residual in one kernel.
  KernelTimes row(double in) const {
    const LinearShape layer{.rows = tokens_,
                            .own_rows = own_tokens_,
                            .in = in,
                            .out = hidden_,
                            .gathers_gradient = gathers()};
    KernelTimes times = linear(layer);
    times.forward += device_.memory((3 * e_ + mask()) * rows_);
    if (shape_.dropout) times.input += device_.memory((2 * e_ + kMaskByte) * rows_);
    if (sums_bias(layer)) times.weight += device_.memory(e_ * rows_, MemoryKernel::column_sum);
    return times;
  }

  KernelTimes qkv() const {
    KernelTimes times = column(query_ + 2 * key_);
    if (!shape_.rotary) return times;
    const Kernels rotation = device_.memory(2 * e_ * tokens_ * (query_ + key_));
    times.forward += rotation;
    times.input += rotation;
    return times;
  }

  KernelTimes fc1() const {
    const double gates = shape_.gated ? 2 : 1, inner = tokens_ * real(shape_.ffn);
    KernelTimes times = column(gates * real(shape_.ffn));
    times.forward += device_.memory((1 + gates) * e_ * inner);
    times.input += device_.memory((1 + 2 * gates) * e_ * inner);
    return times;
  }

  KernelTimes core() const { return shape_.fused_attention ? fused_core() : unfused_core(); }

  KernelTimes head(double vocabulary) const {
    const double logits = tokens_ * vocabulary;
    KernelTimes times = product(hidden_, vocabulary);
    times.forward += norm(e_);
    // To float32; the largest; minus the largest; exponentials; their sum; divided by the sum.
    for (const double bytes : {e_ + kFloat, kFloat, 2 * kFloat, 2 * kFloat, kFloat, 2 * kFloat})
      times.forward += device_.memory(bytes * logits);
    for (const double bytes : {2 * kFloat, kFloat + e_})
      times.input += device_.memory(bytes * logits);
    return times;
  }

 private:
  // The products of a linear layer, and the casts of their operands, which Transformer Engine
  // launches between them without the framework's overhead: the host's time is that of the
  // products.
  KernelTimes linear(const LinearShape& layer) const {
    if (!shape_.fp8) return product(layer.in, layer.out);
    KernelTimes times;
    times.forward = device_.fp8_product(tokens_, layer.out, layer.in);
    times.input = device_.fp8_product(tokens_, layer.in, layer.out);
    times.weight =
        weight(device_.fp8_product(layer.out, layer.in, tokens_), kFp8, layer.in, layer.out);
    const auto add = [&](Kernels& to, const std::vector<double>& kernels) {
      for (const double bytes : kernels) to.seconds += device_.memory(bytes).seconds;
    };
    const Fp8Casts casts = fp8_casts(*shape_.fp8, layer, e_);
    add(times.forward, casts.forward);
    add(times.input, casts.input);
    add(times.weight, casts.weight);
    add(times.cast, casts.once);
    return times;
  }

  // The weight's gradient, added to its buffer. A product with fused accumulation also reads and
  // writes the buffer: the longer of the product's time and that of all bytes counts. `operand`:
  // bytes of its elements.
  Kernels weight(const Kernels& product, double operand, double in, double out) const {
    if (!shape_.fused_accumulation)
      return product + device_.memory((e_ + 2 * shape_.gradient) * in * out);
    const Kernels moved =
        device_.memory(operand * tokens_ * (in + out) + 2 * shape_.gradient * in * out);
    return product.seconds < moved.seconds ? moved : product;
  }

  // Sequence parallelism: the rank has a part of the tokens between the products.
  bool gathers() const { return shape_.own_tokens != shape_.tokens; }
  // Whether a kernel of its own sums the gradient of a bias.
  bool sums_bias(const LinearShape& layer) const {
    return shape_.bias && !(shape_.fp8 && cast_sums_rows(*shape_.fp8, layer));
  }
  // `written`: bytes of an element of the result.
  Kernels norm(double written) const {
    return device_.memory((e_ + written) * rows_, MemoryKernel::norm, e_);
  }
  double mask() const { return shape_.dropout ? kMaskByte : 0; }
  double samples() const { return tokens_ / real(shape_.queries); }

  KernelTimes fused_core() const {
    FusedAttention core;
    core.batch = samples();
    core.heads = real(shape_.heads);
    core.key_heads = key_ / real(shape_.head_width);
    core.queries = real(shape_.queries);
    core.keys = real(shape_.keys);
    core.width = real(shape_.head_width);
    KernelTimes times;
    times.forward = device_.fused_attention(core, e_);
    core.backward = true;
    times.input = device_.fused_attention(core, e_);
    return times;
  }

  KernelTimes unfused_core() const {
    const double matrices = samples() * real(shape_.heads), rows = real(shape_.queries),
                 columns = real(shape_.keys), width = real(shape_.head_width);
    const double scores = matrices * rows * columns;
    const auto product = [&](double m, double n, double k, Operands operands) {
      return device_.product(m, n, k, matrices, e_, operands);
    };
    const Kernels to_scores = product(rows, columns, width, Operands::forward),
                  from_scores = product(rows, width, columns, Operands::input),
                  to_keys = product(columns, width, rows, Operands::weight);  // or to values
    const Kernels dropout =
        shape_.dropout ? device_.memory((2 * e_ + kMaskByte) * scores) : Kernels{};
    const Kernels move = device_.memory(2 * e_ * tokens_ * query_);
    KernelTimes times;
    times.forward = to_scores + softmax(scores, matrices) + dropout + from_scores + move;
    times.input = move + to_scores + to_keys + dropout + softmax_backward(scores, matrices) +
                  from_scores + to_keys + device_.memory(2 * e_ * tokens_ * (query_ + 2 * key_));
    return times;
  }

  bool has_fused_softmax(double matrices) const {
    return static_cast<std::uint64_t>(matrices) % static_cast<std::uint64_t>(kMatrices) == 0;
  }
  Kernels each(std::initializer_list<double> bytes, double elements) const {
    Kernels kernels;
    for (const double b : bytes) kernels += device_.memory(b * elements);
    return kernels;
  }
  // Unfused: to float32, scale, mask, softmax, back. The mask's backward copies, then fills.
  Kernels softmax(double scores, double matrices) const {
    if (has_fused_softmax(matrices)) return device_.memory(2 * e_ * scores, MemoryKernel::softmax);
    return each({e_ + kFloat, 2 * kFloat, 2 * kFloat + kMaskByte, 2 * kFloat, kFloat + e_}, scores);
  }
  Kernels softmax_backward(double scores, double matrices) const {
    if (has_fused_softmax(matrices)) return device_.memory(3 * e_ * scores, MemoryKernel::softmax);
    return each(
        {e_ + kFloat, 3 * kFloat, 2 * kFloat, 2 * kFloat + kMaskByte, 2 * kFloat, kFloat + e_},
        scores);
  }

  const KernelModel& device_;
  const LayerShape& shape_;
  const double e_, tokens_, hidden_, query_, key_, own_tokens_;
  const double rows_;  // elements of the hidden states that this rank norms and adds
};

}  // namespace

LayerKernels layer_kernels(const KernelModel& device, const LayerShape& shape) {
  const LayerWriter layer(device, shape);
  return {layer.qkv(), layer.core(), layer.row(real(shape.query)), layer.fc1(),
          layer.row(real(shape.ffn))};
}

KernelTimes head_kernels(const KernelModel& device, const LayerShape& shape,
                         std::uint64_t vocabulary) {
  return LayerWriter(device, shape).head(real(vocabulary));
}

}  // namespace ghostrank
