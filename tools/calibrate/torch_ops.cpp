#include "tools/calibrate/torch_ops.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <optional>

#include "profiles/input/quantity.h"
#include "tools/calibrate/product_names.h"

namespace ghostrank {
namespace {

// Bytes of an element.
double element_of(const std::string& type) {
  const auto has = [&](const char* part) { return type.find(part) != std::string::npos; };
  if (has("BFloat16") || has("Half")) return 2;
  if (has("complex<float>") || has("double")) return 8;
  if (has("float")) return 4;
  if (has("long")) return 8;
  if (has("int")) return 4;
  if (has("bool") || has("char")) return 1;
  return 0;
}

bool are_sizes(std::initializer_list<double> numbers) {
  constexpr double kMost = 1e12;
  return std::all_of(numbers.begin(), numbers.end(),
                     [](double number) { return number >= 1 && number <= kMost; });
}

std::optional<OperandType> operand_type_of(const std::string& type) {
  if (type.find("BFloat16") != std::string::npos) return OperandType::bf16;
  if (type.find("Half") != std::string::npos) return OperandType::fp16;
  return std::nullopt;  // float32: the trace does not say whether it was rounded to tf32
}

// ---- Kernels that move bytes ----

// A kernel that passes over an operand `passes` times, and over `more` bytes for each element. The
// first match counts. The passes are those that planners count (device/kernels/eager.cpp).
struct Mover {
  std::string_view op;
  std::string_view kernel;  // a part of the kernel's name; empty: any
  MemoryKernel kind;
  double passes;
  std::size_t operand = 0;
  double more = 0;
};
constexpr std::array kMovers{
    Mover{"aten::native_layer_norm", "", MemoryKernel::norm, 2},
    Mover{"aten::_fused_rms_norm", "", MemoryKernel::norm, 2},
    Mover{"aten::native_layer_norm_backward", "GammaBeta", MemoryKernel::column_sum, 2},
    Mover{"aten::native_layer_norm_backward", "", MemoryKernel::norm_backward, 3},
    Mover{"aten::_fused_rms_norm_backward", "GammaBeta", MemoryKernel::column_sum, 2},
    Mover{"aten::_fused_rms_norm_backward", "", MemoryKernel::norm_backward, 3},
    Mover{"aten::sum", "", MemoryKernel::column_sum, 1},
    Mover{"aten::_softmax", "", MemoryKernel::softmax, 2},
    Mover{"aten::_softmax_backward_data", "", MemoryKernel::softmax, 3},
    Mover{"aten::_log_softmax", "", MemoryKernel::loss, 2},
    Mover{"aten::_log_softmax_backward_data", "", MemoryKernel::loss, 3},
    Mover{"aten::gather", "", MemoryKernel::embedding, 2, 4},
    Mover{"aten::embedding_dense_backward", "", MemoryKernel::embedding_backward, 2},
    Mover{"aten::_foreach_mul_", "", MemoryKernel::foreach, 2},
    Mover{"aten::_foreach_add_", "", MemoryKernel::foreach, 2},
    Mover{"aten::_foreach_div_", "", MemoryKernel::foreach, 2},
    Mover{"aten::_foreach_sqrt", "", MemoryKernel::foreach, 2},
    Mover{"aten::_foreach_lerp_", "", MemoryKernel::foreach, 3},
    Mover{"aten::_foreach_addcmul_", "", MemoryKernel::foreach, 3},
    Mover{"aten::_foreach_addcdiv_", "", MemoryKernel::foreach, 4},
    Mover{"aten::_fused_adamw_", "", MemoryKernel::optimizer, 7},
    Mover{"aten::_fused_adam_", "", MemoryKernel::optimizer, 7},
    Mover{"aten::gelu", "", MemoryKernel::elementwise, 2},
    Mover{"aten::gelu_backward", "", MemoryKernel::elementwise, 3},
    Mover{"aten::silu", "", MemoryKernel::elementwise, 2},
    Mover{"aten::silu_backward", "", MemoryKernel::elementwise, 3},
    Mover{"aten::fill_", "", MemoryKernel::elementwise, 1},
    Mover{"aten::native_dropout", "", MemoryKernel::dropout, 2, 0, 1},
    Mover{"aten::native_dropout_backward", "", MemoryKernel::elementwise, 2, 0, 1}};

// Ops that read both operands and write a result. Operands of different sizes are broadcast, and
// such kernels left out.
constexpr std::array<std::string_view, 4> kPairs{"aten::add", "aten::add_", "aten::mul",
                                                 "aten::mul_"};

struct Moved {
  MemoryKernel kind;
  double bytes, element;
  friend auto operator<=>(const Moved&, const Moved&) = default;
};

// Kinds whose kernels differ by the type of their elements, since they compute more than they move.
bool differs_by_type(MemoryKernel kind) {
  return kind == MemoryKernel::norm || kind == MemoryKernel::norm_backward ||
         kind == MemoryKernel::optimizer;
}

// Bytes of an element; 0: unknown. For a list of tensors the trace gives no type, but the kernel's
// name does, as in FusedAdamMathFunctor<float, 4, ...>.
double element_of(const TorchOperand& operand, const std::string& kernel) {
  constexpr std::string_view before = "Functor<";
  if (operand.type.empty()) return element_of(kernel);
  if (operand.type != "TensorList") return element_of(operand.type);
  const std::size_t at = kernel.find(before);
  if (at == std::string::npos) return 0;
  const std::size_t begin = at + before.size();
  return element_of(kernel.substr(begin, kernel.find_first_of(",>", begin) - begin));
}
double bytes_of(const TorchOperand& operand, const std::string& kernel) {
  return operand.elements * element_of(operand, kernel);
}

std::optional<Moved> moved_by(const TorchOp& op, const std::string& kernel) {
  for (const Mover& mover : kMovers) {
    if (op.name != mover.op || kernel.find(mover.kernel) == std::string::npos) continue;
    if (mover.operand >= op.operands.size()) return std::nullopt;
    const TorchOperand& operand = op.operands[mover.operand];
    // Sizes without types are those of all lists of tensors one after the other.
    const bool lists = mover.kind == MemoryKernel::foreach || mover.kind == MemoryKernel::optimizer;
    if (lists && operand.type.empty()) return std::nullopt;
    return Moved{mover.kind,
                 mover.passes * bytes_of(operand, kernel) + mover.more * operand.elements,
                 differs_by_type(mover.kind) ? element_of(operand, kernel) : 0};
  }
  if (op.operands.size() < 2 || op.operands[0].dims != op.operands[1].dims) return std::nullopt;
  const double first = bytes_of(op.operands[0], kernel), second = bytes_of(op.operands[1], kernel);
  const bool pair = std::find(kPairs.begin(), kPairs.end(), op.name) != kPairs.end();
  const bool typed = !op.operands[0].type.empty();  // else a copy may change the type
  if (!pair && !(typed && op.name == "aten::copy_")) return std::nullopt;
  // PyTorch's kernel for operands of several types is another one.
  const MemoryKernel kind = kernel.find("unrolled_elementwise") != std::string::npos
                                ? MemoryKernel::mixed
                                : MemoryKernel::elementwise;
  return Moved{kind, first + second + (pair ? std::max(first, second) : 0), 0};
}

// ---- Attention ----

// Where an op has its queries (index of an operand; the keys are the next one) and its causal flag
// (index of a value; the dropout is the one before), and the layout of the operands' dimensions.
struct AttentionOp {
  std::string_view op;
  std::size_t queries, causal;
  bool heads_first;  // samples, heads, positions, width; else positions before heads
  bool backward;
};
constexpr std::array kAttention{
    AttentionOp{"aten::_scaled_dot_product_flash_attention", 0, 4, true, false},
    AttentionOp{"aten::_scaled_dot_product_flash_attention_backward", 1, 11, true, true},
    AttentionOp{"aten::_flash_attention_forward", 0, 8, false, false},
    AttentionOp{"aten::_flash_attention_backward", 1, 11, false, true},
    AttentionOp{"aten::_scaled_dot_product_cudnn_attention", 0, 6, true, false},
    AttentionOp{"aten::_scaled_dot_product_cudnn_attention_backward", 1, 14, true, true},
    AttentionOp{"aten::_cudnn_attention_forward", 0, 10, true, false},
    AttentionOp{"aten::_cudnn_attention_backward", 1, 14, true, true}};

std::optional<MeasuredAttention> attention_of(const TorchOp& op) {
  const auto* const at = std::find_if(kAttention.begin(), kAttention.end(),
                                      [&](const AttentionOp& one) { return one.op == op.name; });
  if (at == kAttention.end() || op.operands.size() < at->queries + 2 ||
      op.values.size() <= at->causal)
    return std::nullopt;
  const TorchOperand &queries = op.operands[at->queries], &keys = op.operands[at->queries + 1];
  const auto type = operand_type_of(queries.type);
  if (!type || queries.dims.size() != 4 || keys.dims.size() != 4) return std::nullopt;
  const std::size_t heads = at->heads_first ? 1 : 2, positions = at->heads_first ? 2 : 1;
  MeasuredAttention out;
  out.type = *type;
  out.shape = {queries.dims[0],
               queries.dims[heads],
               keys.dims[heads],
               queries.dims[positions],
               keys.dims[positions],
               queries.dims[3],
               op.values[at->causal] == "True",
               at->backward,
               parse_number(op.values[at->causal - 1]).value_or(0) > 0};
  const FusedAttention& shape = out.shape;
  if (!are_sizes(
          {shape.batch, shape.heads, shape.key_heads, shape.queries, shape.keys, shape.width}))
    return std::nullopt;
  return out;
}

// ---- Products ----

bool transposed(const TorchOperand& matrix) {
  const std::size_t rank = matrix.strides.size();
  return rank >= 2 && matrix.strides[rank - 2] == 1 && matrix.strides[rank - 1] != 1;
}

std::optional<ProductShape> product_of(const TorchOp& op, const std::string& kernel) {
  const bool batched = op.name == "aten::bmm" || op.name == "aten::baddbmm";
  const std::size_t first = op.name == "aten::addmm" || op.name == "aten::baddbmm" ? 1 : 0;
  if (!batched && op.name != "aten::mm" && op.name != "aten::addmm") return std::nullopt;
  if (op.operands.size() < first + 2) return std::nullopt;
  const TorchOperand &a = op.operands[first], &b = op.operands[first + 1];
  const ProductName named = product_name(kernel);
  const auto type = a.type.empty() ? named.type : operand_type_of(a.type);
  const std::size_t rank = batched ? 3 : 2;
  if (!type || a.dims.size() != rank || b.dims.size() != rank) return std::nullopt;
  if (a.strides.empty() && !named.operands) return std::nullopt;
  ProductShape shape;
  shape.type = *type;
  shape.m = a.dims[rank - 2], shape.k = a.dims[rank - 1], shape.n = b.dims[rank - 1];
  if (batched) shape.batch = a.dims[0];
  if (!are_sizes({shape.m, shape.n, shape.k, shape.batch})) return std::nullopt;
  shape.operands = a.strides.empty() ? *named.operands
                   : transposed(a)   ? Operands::weight
                   : transposed(b)   ? Operands::forward
                                     : Operands::input;
  return shape;
}

// The longest of the kernels: of a product split over k, not the one that adds the parts up.
const RecordedKernel& longest(const std::vector<const RecordedKernel*>& kernels) {
  return **std::max_element(kernels.begin(), kernels.end(),
                            [](const auto* a, const auto* b) { return a->duration < b->duration; });
}

}  // namespace

double elements_of(const std::vector<double>& dims) {
  double product = dims.empty() ? 0 : 1;
  for (const double size : dims) product *= size;
  return product;
}

void take_op(const TorchOp& op, const std::vector<const RecordedKernel*>& kernels,
             KernelRows& out) {
  double all = 0;
  for (const RecordedKernel* kernel : kernels) all += kernel->duration;
  if (all <= 0) return;  // too short for the profiler's clock
  if (const auto attention = attention_of(op)) {
    out.add(attention->type, attention->shape, all);
  } else if (const auto product = product_of(op, longest(kernels).name)) {
    out.add(*product, all);
  } else {
    std::map<Moved, double> sums;
    for (const RecordedKernel* kernel : kernels) {
      if (const auto moved = moved_by(op, kernel->name); moved && are_sizes({moved->bytes}))
        sums[*moved] += kernel->duration;
      else
        out.leave_out("kernels of ops that are not looked up");
    }
    for (const auto& [key, time] : sums) out.add(key.kind, key.bytes, key.element, time);
  }
}

}  // namespace ghostrank
