#include "profiles/device/kernels/of_layer.h"

#include <cmath>

#include "profiles/device/kernels/element_bytes.h"
#include "profiles/real.h"

namespace ghostrank {
namespace {

constexpr double kFp8 = 1;            // bytes
constexpr double kRowsOfExpert = 16;  // an expert's rows are padded to multiples, as fp8 needs them
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

  // A product of rows, `in` wide, to rows `out` wide; `batch` of them with a weight each.
  KernelTimes product(double rows, double in, double out, double batch = 1) const {
    KernelTimes times;
    times.forward = device_.product(rows, out, in, batch, e_, Operands::forward);
    times.input = device_.product(rows, in, out, batch, e_, Operands::input);
    times.weight = weight(device_.product(out, in, rows, batch, e_, Operands::weight), e_,
                          batch * rows, in, out, batch);
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

  // The norm; logits of the experts, and each token's choice of them; then a row for each choice.
  // Backward the rows' gradients are added up per token, and the residual's is.
  KernelTimes router(const ExpertShape& experts) const {
    const double logits = experts.routed * experts.count,
                 rows = experts.routed * experts.top_k * hidden_, tokens = experts.routed * hidden_;
    KernelTimes times;
    times.forward = norm(e_) + device_.product(experts.routed, experts.count, hidden_, 1, e_);
    for (const double bytes : {e_ + kFloat, 2 * kFloat, kFloat + kMaskByte, kFloat + kMaskByte})
      times.forward += device_.memory(bytes * logits);
    times.forward += device_.memory(2 * e_ * rows);
    times.input = device_.memory(e_ * (rows + tokens)) + device_.memory(3 * kFloat * logits) +
                  device_.product(experts.routed, hidden_, experts.count, 1, e_) +
                  device_.memory(3 * e_ * tokens) +
                  device_.memory(3 * e_ * rows_, MemoryKernel::norm_backward, e_) +
                  device_.memory(3 * e_ * rows_);
    times.weight = device_.product(experts.count, hidden_, experts.routed, 1, e_) +
                   device_.memory(2 * e_ * rows_, MemoryKernel::column_sum);
    return times;
  }

  // Rows come rank by rank; a rank with several experts sorts them, and sorts them back.
  // Transformer Engine launches the products of all experts side by side from one call, so the
  // framework's overhead is that of one.
  KernelTimes experts(const ExpertShape& experts) const {
    const double gates = shape_.gated ? 2 : 1, inner = experts.rows * experts.ffn;
    const LinearShape to{
        .rows = experts.rows, .own_rows = experts.rows, .in = hidden_, .out = gates * experts.ffn},
        from{.rows = experts.rows, .own_rows = experts.rows, .in = experts.ffn, .out = hidden_};
    KernelTimes times = linear(to, experts.here) + linear(from, experts.here);
    times.forward += device_.memory((1 + gates) * e_ * inner);
    times.input += device_.memory((1 + 2 * gates) * e_ * inner);
    if (experts.here > 1)
      for (Kernels* pass : {&times.forward, &times.input})
        for (int way = 0; way < 2; ++way) *pass += device_.memory(2 * e_ * experts.rows * hidden_);
    return times;
  }

  // A token's rows are weighted and added up, then bias, dropout and the residual. Backward each
  // row gets its gradient, and each weight.
  KernelTimes combine(const ExpertShape& experts) const {
    const double rows = experts.routed * experts.top_k * hidden_, tokens = experts.routed * hidden_;
    KernelTimes times;
    times.forward =
        device_.memory(e_ * (rows + tokens)) + device_.memory((3 * e_ + mask()) * rows_);
    times.input = device_.memory(e_ * (2 * rows + tokens));
    if (shape_.dropout) times.input += device_.memory((2 * e_ + kMaskByte) * rows_);
    return times;
  }

  // The products of experts that every token visits, with the activation between them.
  KernelTimes shared(double in, double out, bool first) const {
    const double gates = shape_.gated ? 2 : 1;
    KernelTimes times = linear({.rows = tokens_,
                                .own_rows = own_tokens_,
                                .in = in,
                                .out = first ? gates * out : out,
                                .gathers_input = first && gathers(),
                                .gathers_gradient = !first && gathers()});
    if (!first) return times;
    times.forward += device_.memory((1 + gates) * e_ * tokens_ * out);
    times.input += device_.memory((1 + 2 * gates) * e_ * tokens_ * out);
    return times;
  }

  KernelTimes core() const { return shape_.fused_attention ? fused_core() : unfused_core(); }

  KernelTimes head(double vocabulary) const {
    const double logits = tokens_ * vocabulary;
    KernelTimes times = product(tokens_, hidden_, vocabulary);
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
  // `batch`: of layers alike, which share the rows evenly.
  KernelTimes linear(const LinearShape& layer, double batch = 1) const {
    const double rows = in_vectors(layer.rows / batch);
    if (!shape_.fp8) return product(rows, layer.in, layer.out, batch);
    KernelTimes times;
    times.forward = device_.fp8_product(rows, layer.out, layer.in, batch);
    times.input = device_.fp8_product(rows, layer.in, layer.out, batch);
    times.weight = weight(device_.fp8_product(layer.out, layer.in, rows, batch), kFp8, layer.rows,
                          layer.in, layer.out, batch);
    const auto add = [&](Kernels& to, const std::vector<double>& kernels, double times_each = 1) {
      for (const double bytes : kernels) to.seconds += device_.memory(times_each * bytes).seconds;
    };
    const Fp8Casts casts = fp8_casts(*shape_.fp8, layer, e_);
    add(times.forward, casts.forward);
    add(times.input, casts.input);
    add(times.weight, casts.weight);
    add(times.cast, casts.once, batch);
    return times;
  }

  // Rows of an expert are padded to whole vectors; those of a dense layer are what they are.
  double in_vectors(double rows) const {
    return rows == tokens_ ? rows : kRowsOfExpert * std::ceil(rows / kRowsOfExpert);
  }

  // The weight's gradient, added to its buffer. A product with fused accumulation also reads and
  // writes the buffer: the longer of the product's time and that of all bytes counts. `operand`:
  // bytes of its elements; `rows`: of all `batch` products together.
  Kernels weight(const Kernels& product, double operand, double rows, double in, double out,
                 double batch) const {
    const double weights = batch * in * out;
    if (!shape_.fused_accumulation)
      return product + device_.memory((e_ + 2 * shape_.gradient) * weights);
    const Kernels moved =
        device_.memory(operand * rows * (in + out) + 2 * shape_.gradient * weights);
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

ExpertKernels expert_kernels(const KernelModel& device, const LayerShape& shape,
                             const ExpertShape& experts) {
  const LayerWriter layer(device, shape);
  ExpertKernels out{layer.router(experts), layer.experts(experts), layer.combine(experts), {}, {}};
  if (experts.shared_ffn == 0) return out;
  out.shared1 = layer.shared(real(shape.hidden), experts.shared_ffn, true);
  out.shared2 = layer.shared(experts.shared_ffn, real(shape.hidden), false);
  return out;
}

KernelTimes head_kernels(const KernelModel& device, const LayerShape& shape,
                         std::uint64_t vocabulary) {
  return LayerWriter(device, shape).head(real(vocabulary));
}

}  // namespace ghostrank
