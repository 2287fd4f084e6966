#include "tools/calibrate/kineto_kernels.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "profiles/input/yaml.h"
#include "profiles/median.h"
#include "profiles/trace/json_elements.h"

namespace ghostrank {
namespace {

constexpr double kUsualGap = 3;  // microseconds; a longer one is no gap between queued kernels

using Dims = std::vector<double>;

// An operand of an op: a tensor, or a list of tensors, whose elements are added up.
struct Operand {
  Dims dims, strides;
  double elements = 0;
  std::string type;
};

struct Op {
  std::string name;
  std::vector<Operand> operands;
  std::vector<std::string> values;  // of operands that are no tensors: "True", "0.1"
};

struct Kernel {
  std::string name;
  double start = 0, duration = 0;  // microseconds
  std::int64_t stream = 0, op = -1;
};

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
  return std::nullopt;  // of float32 the trace does not say whether it was rounded to tf32
}

// ---- Kernels that move bytes ----

// A kernel that passes over an operand so many times, and over `more` bytes for each element. The
// first row that fits counts. The passes are those that planners count (device/eager_kernels.cpp).
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

// Read both operands, and write one more. Others than of one size are broadcast, and left out.
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

// Of a list of tensors the trace does not say which type they have; the kernel's name does, as in
// FusedAdamMathFunctor<float, 4, ...>.
double element_of(const Operand& operand, const std::string& kernel) {
  constexpr std::string_view before = "Functor<";
  if (operand.type != "TensorList") return element_of(operand.type);
  const std::size_t at = kernel.find(before);
  if (at == std::string::npos) return 0;
  const std::size_t begin = at + before.size();
  return element_of(kernel.substr(begin, kernel.find_first_of(",>", begin) - begin));
}
double bytes_of(const Operand& operand, const std::string& kernel) {
  return operand.elements * element_of(operand, kernel);
}

std::optional<Moved> moved_by(const Op& op, const std::string& kernel) {
  for (const Mover& mover : kMovers) {
    if (op.name != mover.op || kernel.find(mover.kernel) == std::string::npos) continue;
    if (mover.operand >= op.operands.size()) return std::nullopt;
    const Operand& operand = op.operands[mover.operand];
    return Moved{mover.kind,
                 mover.passes * bytes_of(operand, kernel) + mover.more * operand.elements,
                 differs_by_type(mover.kind) ? element_of(operand, kernel) : 0};
  }
  if (op.operands.size() < 2 || op.operands[0].dims != op.operands[1].dims) return std::nullopt;
  const double first = bytes_of(op.operands[0], kernel), second = bytes_of(op.operands[1], kernel);
  const bool pair = std::find(kPairs.begin(), kPairs.end(), op.name) != kPairs.end();
  if (!pair && op.name != "aten::copy_") return std::nullopt;
  // PyTorch's kernel for operands of several types is another one.
  const MemoryKernel kind = kernel.find("unrolled_elementwise") != std::string::npos
                                ? MemoryKernel::mixed
                                : MemoryKernel::elementwise;
  return Moved{kind, first + second + (pair ? std::max(first, second) : 0), 0};
}

// ---- Attention ----

// Where an op has its queries and keys, the layout of their dimensions, and where it says whether
// it is causal, before which it says how much it drops.
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

std::optional<MeasuredAttention> attention_of(const Op& op) {
  const auto* const at = std::find_if(kAttention.begin(), kAttention.end(),
                                      [&](const AttentionOp& one) { return one.op == op.name; });
  if (at == kAttention.end() || op.operands.size() < at->queries + 2 ||
      op.values.size() <= at->causal)
    return std::nullopt;
  const Operand &queries = op.operands[at->queries], &keys = op.operands[at->queries + 1];
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

bool transposed(const Operand& matrix) {
  const std::size_t rank = matrix.strides.size();
  return rank >= 2 && matrix.strides[rank - 2] == 1 && matrix.strides[rank - 1] != 1;
}

std::optional<ProductShape> product_of(const Op& op) {
  const bool batched = op.name == "aten::bmm" || op.name == "aten::baddbmm";
  const std::size_t first = op.name == "aten::addmm" || op.name == "aten::baddbmm" ? 1 : 0;
  if (!batched && op.name != "aten::mm" && op.name != "aten::addmm") return std::nullopt;
  if (op.operands.size() < first + 2) return std::nullopt;
  const Operand &a = op.operands[first], &b = op.operands[first + 1];
  const auto type = operand_type_of(a.type);
  const std::size_t rank = batched ? 3 : 2;
  if (!type || a.dims.size() != rank || b.dims.size() != rank || a.strides.empty())
    return std::nullopt;
  ProductShape shape;
  shape.type = *type;
  shape.m = a.dims[rank - 2], shape.k = a.dims[rank - 1], shape.n = b.dims[rank - 1];
  if (batched) shape.batch = a.dims[0];
  if (!are_sizes({shape.m, shape.n, shape.k, shape.batch})) return std::nullopt;
  shape.operands = transposed(a)   ? Operands::weight
                   : transposed(b) ? Operands::forward
                                   : Operands::input;
  return shape;
}

// ---- The file ----

class Reader {
 public:
  void read(const std::string& path) {
    path_ = &path;
    kernels_.clear();
    ops_.clear();
    for_each_element(
        path, "traceEvents",
        [&](const JsonTape& json, std::uint64_t line) {
          line_ = line;
          take(json);
        },
        [&](std::string_view key, const JsonTape& json) {
          if (key == "deviceProperties") take_device(json);
        });
    if (kernels_.empty())
      throw Error(path +
                  ":1:1: there are no kernels of a device; record with ProfilerActivity.CUDA");
    if (ops_.empty())
      throw Error(path + ":1:1: no op has 'Input Dims'; record with record_shapes=True");
    add_gaps();
    take_kernels();
  }

  KinetoKernels result() {
    KernelTables& tables = out_.tables;
    for (auto& [key, times] : moved_)
      tables.transfers.push_back(
          {key.kind, key.bytes, median(std::move(times)) * 1e-6, key.element});
    for (auto& [key, times] : attention_)
      tables.attention.push_back({key.second, key.first, median(std::move(times)) * 1e-6});
    for (auto& [shape, times] : products_)
      tables.products.push_back({shape, median(std::move(times)) * 1e-6});
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(*path_ + ":" + std::to_string(line_) + ":1: " + what);
  }

  void take_device(const JsonTape& json) {
    if (json.root().kind != JsonNode::Kind::array) return;
    for (const JsonNode& one : json.children(json.root()))
      if (const JsonNode* name = json.find(one, "name"))
        if (out_.gpu.empty()) out_.gpu = name->text;
  }

  double micros(const JsonTape& json, const char* key) const {
    const JsonNode* value = json.find(json.root(), key);
    if (!value || !value->is_number() || !(value->number >= 0))
      fail(std::string(key) + " is no time in microseconds");
    return value->number;
  }

  static std::optional<std::int64_t> id(const JsonTape& json, const JsonNode& args,
                                        const char* key) {
    const JsonNode* value = json.find(args, key);
    if (value && value->is_integer()) return value->integer;
    if (value && value->kind == JsonNode::Kind::string) return parse_integer(value->text);
    return std::nullopt;
  }

  void take(const JsonTape& json) {
    const JsonNode* category = json.find(json.root(), "cat");
    const JsonNode* name = json.find(json.root(), "name");
    const JsonNode* args = json.find(json.root(), "args");
    if (!category || !name || !args) return;
    if (category->text == "kernel") {
      kernels_.push_back({std::string(name->text), micros(json, "ts"), micros(json, "dur"),
                          id(json, *args, "stream").value_or(0),
                          id(json, *args, "External id").value_or(-1)});
    } else if (category->text == "cpu_op") {
      const auto number = id(json, *args, "External id");
      const JsonNode* dims = json.find(*args, "Input Dims");
      if (number && dims) ops_[*number] = op_of(json, *args, *dims, std::string(name->text));
    }
  }

  static Dims numbers(const JsonTape& json, const JsonNode& list) {
    Dims out;
    for (const JsonNode& one : json.children(list)) out.push_back(one.number);
    return out;
  }

  static Op op_of(const JsonTape& json, const JsonNode& args, const JsonNode& dims,
                  std::string name) {
    Op op{std::move(name), {}, {}};
    for (const JsonNode& one : json.children(dims)) {
      Operand& operand = op.operands.emplace_back();
      const auto elements = [](const Dims& sizes) {
        double product = sizes.empty() ? 0 : 1;
        for (const double size : sizes) product *= size;
        return product;
      };
      bool list = false;
      for (const JsonNode& inner : json.children(one)) {
        if (inner.kind != JsonNode::Kind::array) break;
        list = true;
        operand.elements += elements(numbers(json, inner));
      }
      if (list) continue;
      operand.dims = numbers(json, one);
      operand.elements = elements(operand.dims);
    }
    const auto each = [&](const char* key, const auto& take) {
      const JsonNode* all = json.find(args, key);
      if (!all || all->kind != JsonNode::Kind::array) return;
      std::size_t at = 0;
      for (const JsonNode& one : json.children(*all)) take(at++, one);
    };
    each("Input type", [&](std::size_t at, const JsonNode& one) {
      if (at >= op.operands.size()) return;
      std::string& type = op.operands[at].type;
      type = one.text;
      if (one.kind == JsonNode::Kind::array)
        for (const JsonNode& inner : json.children(one)) type = inner.text;
    });
    each("Input Strides", [&](std::size_t at, const JsonNode& one) {
      if (at < op.operands.size() && one.kind == JsonNode::Kind::array)
        op.operands[at].strides = numbers(json, one);
    });
    each("Concrete Inputs",
         [&](std::size_t, const JsonNode& one) { op.values.emplace_back(one.text); });
    return op;
  }

  // Adds to each kernel what usually passes between queued ones on a stream.
  void add_gaps() {
    std::sort(kernels_.begin(), kernels_.end(), [](const Kernel& a, const Kernel& b) {
      return std::tie(a.stream, a.start) < std::tie(b.stream, b.start);
    });
    std::vector<double> gaps;
    for (std::size_t i = 1; i < kernels_.size(); ++i) {
      const Kernel &before = kernels_[i - 1], &kernel = kernels_[i];
      const double gap = kernel.start - before.start - before.duration;
      if (kernel.stream == before.stream && gap >= 0 && gap < kUsualGap) gaps.push_back(gap);
    }
    const double usual = median(std::move(gaps));
    for (Kernel& kernel : kernels_) kernel.duration += usual;
  }

  // Kernels of one op and of one row of the table belong together: attention's backward has
  // several, and the optimizer has one for each chunk of tensors.
  void take_kernels() {
    std::map<std::int64_t, std::vector<const Kernel*>> by_op;
    for (const Kernel& kernel : kernels_) {
      if (ops_.contains(kernel.op))
        by_op[kernel.op].push_back(&kernel);
      else
        ++out_.left_out["kernels without an op that has shapes"];
    }
    for (const auto& [number, kernels] : by_op) take_op(ops_.at(number), kernels);
  }

  void take_op(const Op& op, const std::vector<const Kernel*>& kernels) {
    double all = 0;
    for (const Kernel* kernel : kernels) all += kernel->duration;
    if (all <= 0) return;  // too short for the profiler's clock
    if (const auto attention = attention_of(op)) {
      attention_[{attention->type, attention->shape}].push_back(all);
    } else if (const auto product = product_of(op)) {
      products_[*product].push_back(all);
    } else {
      std::map<Moved, double> sums;
      for (const Kernel* kernel : kernels) {
        if (const auto moved = moved_by(op, kernel->name); moved && are_sizes({moved->bytes}))
          sums[*moved] += kernel->duration;
        else
          ++out_.left_out["kernels of ops that are not looked up"];
      }
      for (const auto& [key, time] : sums) moved_[key].push_back(time);
    }
  }

  const std::string* path_ = nullptr;
  std::uint64_t line_ = 1;
  std::vector<Kernel> kernels_;
  std::map<std::int64_t, Op> ops_;  // by "External id"
  std::map<Moved, std::vector<double>> moved_;
  std::map<std::pair<OperandType, FusedAttention>, std::vector<double>> attention_;
  std::map<ProductShape, std::vector<double>> products_;
  KinetoKernels out_;
};

// `rows`, and those of `others` whose key they lack; by key.
template <class Row, class Key>
std::vector<Row> with_others(const std::vector<Row>& rows, const std::vector<Row>& others,
                             const Key& key) {
  std::map<decltype(key(rows.front())), Row> all;
  for (const std::vector<Row>* some : {&rows, &others})
    for (const Row& row : *some) all.emplace(key(row), row);
  std::vector<Row> out;
  for (const auto& [unused, row] : all) out.push_back(row);
  return out;
}

TrainingPace pace_of(const std::vector<MeasuredProduct>& recorded,
                     const std::vector<MeasuredProduct>& measured) {
  constexpr std::size_t kEnough = 8;
  std::map<ProductShape, double> alone;
  for (const MeasuredProduct& one : measured) alone.emplace(one.shape, one.seconds);
  std::vector<double> ratios;
  for (const MeasuredProduct& one : recorded)
    if (const auto at = alone.find(one.shape); at != alone.end())
      ratios.push_back(one.seconds / at->second);
  TrainingPace pace{1, ratios.size()};
  if (pace.sizes >= kEnough) pace.slower = median(std::move(ratios));
  return pace;
}

}  // namespace

KinetoKernels read_kineto_kernels(const std::vector<std::string>& paths) {
  Reader reader;
  for (const std::string& path : paths) reader.read(path);
  return reader.result();
}

TrainingPace add_recorded(const KernelTables& recorded, KernelTables& tables) {
  std::set<MemoryKernel> kinds;
  for (const MeasuredTransfer& one : recorded.transfers)
    if (one.kind != MemoryKernel::elementwise) kinds.insert(one.kind);
  std::erase_if(tables.transfers,
                [&](const MeasuredTransfer& one) { return kinds.contains(one.kind); });
  const bool curve = std::any_of(
      tables.transfers.begin(), tables.transfers.end(),
      [](const MeasuredTransfer& one) { return one.kind == MemoryKernel::elementwise; });
  for (const MeasuredTransfer& one : recorded.transfers)
    if (one.kind != MemoryKernel::elementwise || !curve) tables.transfers.push_back(one);
  const TrainingPace pace = pace_of(recorded.products, tables.products);
  for (MeasuredProduct& one : tables.products) one.seconds *= pace.slower;
  tables.products = with_others(recorded.products, tables.products,
                                [](const MeasuredProduct& one) { return one.shape; });
  tables.attention =
      with_others(recorded.attention, tables.attention,
                  [](const MeasuredAttention& one) { return std::pair(one.type, one.shape); });
  return pace;
}

}  // namespace ghostrank
