#include "tools/calibrate/kineto_kernels.h"

#include <map>
#include <optional>
#include <utility>

#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "profiles/input/yaml.h"
#include "profiles/trace/json_elements.h"
#include "tools/calibrate/torch_ops.h"

namespace ghostrank {
namespace {

class KinetoReader {
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
    add_gaps(kernels_);
    take_kernels();
  }

  RecordedKernels result() { return rows_.take(std::move(gpu_)); }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(*path_ + ":" + std::to_string(line_) + ":1: " + what);
  }

  void take_device(const JsonTape& json) {
    if (json.root().kind != JsonNode::Kind::array) return;
    for (const JsonNode& one : json.children(json.root()))
      if (const JsonNode* name = json.find(one, "name")) {
        if (gpu_.empty()) gpu_ = name->text;
        if (name->text != gpu_)
          throw Error(*path_ + ": kernels of " + quote(name->text) + ", and of " + quote(gpu_) +
                      " before; give traces of one device");
        return;
      }
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

  static std::vector<double> numbers(const JsonTape& json, const JsonNode& list) {
    std::vector<double> out;
    for (const JsonNode& one : json.children(list)) out.push_back(one.number);
    return out;
  }

  static TorchOp op_of(const JsonTape& json, const JsonNode& args, const JsonNode& dims,
                       std::string name) {
    TorchOp op{std::move(name), {}, {}};
    for (const JsonNode& one : json.children(dims)) {
      TorchOperand& operand = op.operands.emplace_back();
      bool list = false;
      for (const JsonNode& inner : json.children(one)) {
        if (inner.kind != JsonNode::Kind::array) break;
        list = true;
        operand.elements += elements_of(numbers(json, inner));
      }
      if (list) continue;
      operand.dims = numbers(json, one);
      operand.elements = elements_of(operand.dims);
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

  void take_kernels() {
    std::map<std::int64_t, std::vector<const RecordedKernel*>> by_op;
    for (const RecordedKernel& kernel : kernels_) {
      if (ops_.contains(kernel.op))
        by_op[kernel.op].push_back(&kernel);
      else
        rows_.leave_out("kernels without an op that has shapes");
    }
    for (const auto& [number, kernels] : by_op) take_op(ops_.at(number), kernels, rows_);
  }

  const std::string* path_ = nullptr;
  std::uint64_t line_ = 1;
  std::vector<RecordedKernel> kernels_;
  std::map<std::int64_t, TorchOp> ops_;  // by "External id"
  std::string gpu_;
  KernelRows rows_;
};

}  // namespace

RecordedKernels read_kineto_kernels(const std::vector<std::string>& paths) {
  KinetoReader reader;
  for (const std::string& path : paths) reader.read(path);
  return reader.result();
}

}  // namespace ghostrank
