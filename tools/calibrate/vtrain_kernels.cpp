#include "tools/calibrate/vtrain_kernels.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "profiles/device/device.h"
#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "profiles/planners/megatron/plan.h"
#include "profiles/real.h"
#include "tools/calibrate/product_names.h"

namespace ghostrank {
namespace {

constexpr std::size_t kMostLines = 5'000'000;
constexpr std::int64_t kMostNanos = 1'000'000'000'000'000;

// Which part of a step launches: the layer's forward, its backward, or anything else.
enum class Part : std::uint8_t { forward, backward, other };

struct Line {
  enum class Kind : std::uint8_t { mark, call, kernel, other };
  Kind kind = Kind::other;
  std::size_t number = 0;
  std::int64_t start = 0, duration = 0, correlation = 0, stream = 0;
  std::string text;  // of a mark; a kernel's name
};

struct LayerKernel {
  RecordedKernel kernel;
  std::size_t line = 0;
  ProductName named;
};

// Two products of one linear layer's backward, or of one of the core: in either order.
using Pair = std::array<ProductShape, 2>;

// The products of a layer with unfused attention, and what its softmax and norms pass over.
struct Layer {
  std::vector<ProductShape> forward;
  std::vector<Pair> backward;
  double scores = 0, rows = 0;  // bytes
  double element = 2;
};

Layer layer_of(const JobSpec& spec, const LayerShape& s) {
  const OperandType type = operand_type(spec.device, spec.precision.parameters);
  const double tokens = real(s.tokens), hidden = real(s.hidden), query = real(s.query),
               all = query + 2 * real(s.key), ffn = real(s.ffn), width = real(s.head_width),
               queries = real(s.queries), keys = real(s.keys),
               matrices = tokens / queries * real(s.heads);
  Layer out;
  const auto linear = [&](double in, double of) {
    out.forward.push_back({tokens, of, in, 1, type, Operands::forward});
    out.backward.insert(out.backward.begin(),
                        Pair{ProductShape{tokens, in, of, 1, type, Operands::input},
                             ProductShape{of, in, tokens, 1, type, Operands::weight}});
  };
  linear(hidden, all);
  // Queries times keys, and scores times values.
  out.forward.push_back({queries, keys, width, matrices, type, Operands::forward});
  out.backward.insert(out.backward.begin(),
                      Pair{ProductShape{queries, width, keys, matrices, type, Operands::input},
                           ProductShape{keys, width, queries, matrices, type, Operands::weight}});
  out.forward.push_back({queries, width, keys, matrices, type, Operands::input});
  out.backward.insert(out.backward.begin(),
                      Pair{ProductShape{queries, keys, width, matrices, type, Operands::forward},
                           ProductShape{keys, width, queries, matrices, type, Operands::weight}});
  linear(query, hidden);
  linear(hidden, ffn);
  linear(ffn, hidden);
  out.element = s.element;
  out.scores = s.element * matrices * queries * keys;
  out.rows = s.element * tokens * hidden;
  return out;
}

void check_job(const JobSpec& spec) {
  const auto refuse = [&](const char* key, const std::string& what) {
    throw Error(spec.source_of(key) + ": " + what);
  };
  if (spec.parallel.framework != Framework::megatron || !spec.model || !spec.model->transformer)
    refuse("parallel.framework",
           "vTrain profiles a layer of Megatron's GPT; give a job with framework: megatron and a "
           "transformer");
  const Transformer& m = *spec.model->transformer;
  if (m.gated || !m.learned_positions || m.is_latent() || m.experts.count > 0)
    refuse("model", "vTrain profiles GPT's layers; give a model with architecture: gpt2");
  if (spec.parallel.attention != Attention::unfused)
    refuse("parallel.attention",
           "vTrain's layer keeps its scores in memory; set parallel.attention: unfused");
}

class VtrainReader {
 public:
  explicit VtrainReader(const JobSpec& spec)
      : layer_(layer_of(spec, megatron_layer_shape(megatron_plan(spec)))) {}

  void read(const std::string& path) {
    path_ = &path;
    std::vector<Line> lines = read_lines();
    std::stable_sort(lines.begin(), lines.end(),
                     [](const Line& a, const Line& b) { return a.start < b.start; });
    std::vector<LayerKernel> forward, backward;
    sort_out(lines, forward, backward);
    if (forward.empty() && backward.empty())
      throw Error(path +
                  ":1:1: no kernel was launched between \"forward start transformer\" and its end; "
                  "give what vTrain's profiler writes as trace_WIDTH_TP_MICROBATCH");
    take_forward(products_of(forward, layer_.forward.size(), "forward"));
    take_backward(products_of(backward, 2 * layer_.backward.size(), "backward"));
    take_movers(forward, 2, false);
    take_movers(backward, 3, true);
  }

  RecordedKernels result() { return rows_.take(""); }

 private:
  [[noreturn]] void fail(std::size_t line, const std::string& what) const {
    throw Error(*path_ + ":" + std::to_string(line) + ":1: " + what);
  }

  std::vector<Line> read_lines() const {
    std::ifstream file(*path_);
    if (!file) throw Error(*path_ + ": cannot be read");
    std::vector<Line> out;
    std::size_t number = 0;
    for (std::string text; std::getline(file, text);) {
      ++number;
      if (!text.empty() && text.back() == '\r') text.pop_back();
      if (text.empty()) continue;
      if (out.size() == kMostLines)
        fail(number, "more than " + std::to_string(kMostLines) + " lines; profile one step");
      out.push_back(line_of(text, number));
    }
    return out;
  }

  // What quotes enclose is one field.
  std::vector<std::string_view> fields_of(std::string_view text, std::size_t number) const {
    std::vector<std::string_view> out;
    for (bool more = true; more;) {
      std::size_t end = 0;
      if (text.starts_with('"')) {
        const std::size_t close = text.find('"', 1);
        if (close == std::string_view::npos) fail(number, "a quote is not closed; write it again");
        out.push_back(text.substr(1, close - 1));
        end = text.find(',', close);
      } else {
        end = text.find(',');
        out.push_back(text.substr(0, end));
      }
      more = end != std::string_view::npos;
      if (more) text.remove_prefix(end + 1);
    }
    return out;
  }

  std::int64_t number_in(std::string_view field, std::size_t line, const char* what) const {
    const auto value = parse_integer(field);
    if (!value || *value < 0 || *value > kMostNanos)
      fail(line, std::string(what) + " is " + quote(field) + "; vTrain writes integers there");
    return *value;
  }

  Line line_of(std::string_view text, std::size_t number) const {
    constexpr std::size_t kOfKernel = 14, kOfCall = 7, kOfMark = 4;
    const std::vector<std::string_view> fields = fields_of(text, number);
    const auto expect = [&](std::size_t least) {
      if (fields.size() != least)
        fail(number, "the line has " + std::to_string(fields.size()) + " fields and " +
                         std::string(fields[2]) + " needs " + std::to_string(least) +
                         "; profile again");
    };
    if (fields.size() < 3)
      fail(number, "the line is no event; vTrain writes START,DURATION,KIND,...");
    Line line;
    line.number = number;
    line.start = number_in(fields[0], number, "the start");
    line.duration = number_in(fields[1], number, "the duration");
    if (fields[2] == "KERNEL" || fields[2] == "CONC KERNEL") {
      expect(kOfKernel);
      line.kind = Line::Kind::kernel;
      line.text = fields[3];
      line.stream = number_in(fields[6], number, "the stream");
      line.correlation = number_in(fields[kOfKernel - 1], number, "the correlation");
    } else if (fields[2] == "RUNTIME" || fields[2] == "DRIVER") {
      expect(kOfCall);
      line.kind = Line::Kind::call;
      line.correlation = number_in(fields[kOfCall - 1], number, "the correlation");
    } else if (fields[2] == "TIMESTAMP") {
      expect(kOfMark);
      line.kind = Line::Kind::mark;
      line.text = fields[3];
    } else if (fields[2] != "MEMCPY" && fields[2] != "MEMSET") {
      fail(number, "the kind is " + quote(fields[2]) +
                       "; vTrain writes KERNEL, RUNTIME, DRIVER, MEMCPY, MEMSET or TIMESTAMP");
    }
    return line;
  }

  // The layer's kernels, in their order.
  void sort_out(const std::vector<Line>& lines, std::vector<LayerKernel>& forward,
                std::vector<LayerKernel>& backward) {
    Part now = Part::other;
    std::unordered_map<std::int64_t, Part> launched;
    std::vector<RecordedKernel> all;
    std::vector<const Line*> kernels;
    for (const Line& line : lines) {
      if (line.kind == Line::Kind::mark) {
        now = line.text == "forward start transformer"    ? Part::forward
              : line.text == "backward start transformer" ? Part::backward
                                                          : Part::other;
      } else if (line.kind == Line::Kind::call) {
        launched[line.correlation] = now;
      } else if (line.kind == Line::Kind::kernel) {
        all.push_back({line.text, static_cast<double>(line.start) * 1e-3,
                       static_cast<double>(line.duration) * 1e-3, line.stream,
                       static_cast<std::int64_t>(kernels.size())});
        kernels.push_back(&line);
      }
    }
    add_gaps(all);
    std::sort(all.begin(), all.end(),
              [](const RecordedKernel& a, const RecordedKernel& b) { return a.op < b.op; });
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto part = launched.find(kernels[i]->correlation);
      if (part == launched.end() || part->second == Part::other) {
        rows_.leave_out("kernels outside the layer");
        continue;
      }
      (part->second == Part::forward ? forward : backward)
          .push_back({all[i], kernels[i]->number, product_name(all[i].name)});
    }
  }

  // The products; the time of a split product includes the kernel that adds up its parts.
  std::vector<LayerKernel> products_of(const std::vector<LayerKernel>& kernels, std::size_t wanted,
                                       const char* pass) const {
    std::vector<LayerKernel> out;
    for (const LayerKernel& one : kernels) {
      if (one.named.is_product) out.push_back(one);
      if (one.named.adds_parts && !out.empty()) out.back().kernel.duration += one.kernel.duration;
    }
    if (out.size() != wanted)
      fail(kernels.empty() ? 1 : kernels.front().line,
           "the layer's " + std::string(pass) + " has " + std::to_string(out.size()) +
               " products and the job's has " + std::to_string(wanted) +
               "; profile a GPT layer without recomputation");
    return out;
  }

  void take_product(const LayerKernel& kernel, ProductShape shape) {
    if (kernel.named.type) shape.type = *kernel.named.type;
    if (kernel.named.operands && *kernel.named.operands != shape.operands)
      fail(kernel.line, quote(kernel.kernel.name) +
                            " does not read its operands as the job's product there does; is the "
                            "file of the job's layer?");
    if (kernel.kernel.duration > 0) rows_.add(shape, kernel.kernel.duration);
  }

  void take_forward(const std::vector<LayerKernel>& products) {
    for (std::size_t i = 0; i < products.size(); ++i) take_product(products[i], layer_.forward[i]);
  }

  void take_backward(const std::vector<LayerKernel>& products) {
    for (std::size_t i = 0; i < layer_.backward.size(); ++i) {
      const LayerKernel *first = &products[2 * i], *second = first + 1;
      const Pair& pair = layer_.backward[i];
      if (first->named.operands == pair[1].operands || second->named.operands == pair[0].operands)
        std::swap(first, second);
      take_product(*first, pair[0]);
      take_product(*second, pair[1]);
    }
  }

  // Softmax and norms, which pass over their tensors `passes` times. Gradients of a norm's weights
  // are several kernels each, whose number differs.
  void take_movers(const std::vector<LayerKernel>& kernels, double passes, bool backward) {
    for (const LayerKernel& one : kernels) {
      const std::string& name = one.kernel.name;
      const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
      if (one.named.is_product || one.named.adds_parts) continue;
      const bool norm =
          (has("LayerNorm") || has("layer_norm") || has("ComputeGradInput")) && !has("GammaBeta");
      if (one.kernel.duration <= 0 || (!norm && !has("softmax"))) {
        rows_.leave_out("kernels of the layer whose size is not known");
      } else if (norm) {
        rows_.add(backward ? MemoryKernel::norm_backward : MemoryKernel::norm, passes * layer_.rows,
                  layer_.element, one.kernel.duration);
      } else {
        rows_.add(MemoryKernel::softmax, passes * layer_.scores, 0, one.kernel.duration);
      }
    }
  }

  const Layer layer_;
  const std::string* path_ = nullptr;
  KernelRows rows_;
};

}  // namespace

RecordedKernels read_vtrain_kernels(const std::vector<std::string>& paths, const JobSpec& spec) {
  check_job(spec);
  VtrainReader reader(spec);
  for (const std::string& path : paths) reader.read(path);
  return reader.result();
}

}  // namespace ghostrank
