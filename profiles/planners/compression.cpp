#include "profiles/planners/compression.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "profiles/algorithms/algorithms.h"
#include "profiles/error.h"

namespace ghostrank {
namespace {

Picoseconds picos(double nanoseconds) { return std::llround(nanoseconds * 1e3); }

// The pass over one role's program.
class Pass {
 public:
  Pass(const JobSpec& spec, Workload& workload, Program& program)
      : spec_(spec),
        method_(*spec.compression->method),
        options_(spec.compression->options),
        workload_(workload),
        program_(program) {}

  void run() {
    for (OpList& stream : program_.streams) {
      OpList out;
      for (const Op& op : stream) append(op, out);
      out.shrink_to_fit();
      stream = std::move(out);
    }
  }

 private:
  void append(const Op& op, OpList& out) {
    if (op.kind != Op::Kind::collective || op.tensor == 0 || op.count == 0)
      return out.push_back(op);
    if (op.dtype != DataType::float32 && op.dtype != DataType::bfloat16)
      throw Error(spec_.source_of("precision.gradients") + ": gradients of " +
                  std::string(name_of(op.dtype)) +
                  " cannot be compressed; use fp32 or bf16, or compression.method=none");
    const CompressedTensor tensor{op.tensor, op.dtype, op.count};
    auto& known = workload_.compressed;
    if (std::find(known.begin(), known.end(), tensor) == known.end()) known.push_back(tensor);
    const CompressionCost& cost = method_.cost;
    const int payloads = method_.exchange == Func::all_gather ? workload_.ranks : 1;
    const auto elements = static_cast<double>(op.count);
    out.push_back(delay("compress", 1e3 * cost.tensor_us + elements * cost.compress_ns));
    Op exchange = op;
    exchange.func = method_.exchange;
    exchange.dtype = method_.payload;
    exchange.count = method_.size(op.count, options_);
    out.push_back(exchange);
    out.push_back(
        delay("decompress", payloads * (1e3 * cost.tensor_us + elements * cost.decompress_ns)));
  }

  Op delay(const std::string& label, double nanoseconds) {
    Op op;
    op.duration = picos(nanoseconds);
    const auto known = std::find(program_.labels.begin(), program_.labels.end(), label);
    op.label = static_cast<std::uint32_t>(known - program_.labels.begin());
    if (known == program_.labels.end()) program_.labels.push_back(label);
    return op;
  }

  const JobSpec& spec_;
  const Compressor& method_;
  const CompressionOptions& options_;
  Workload& workload_;
  Program& program_;
};

bool reduces_whole_tensors(Framework framework) {
  return framework == Framework::ddp || framework == Framework::horovod ||
         framework == Framework::wfbp || framework == Framework::mgwfbp;
}

std::vector<std::string> known_methods(const Algorithms& own) {
  std::vector<std::string> names{"none"};
  for (const Compressor* method : own.compressors()) names.emplace_back(method->name);
  return names;
}

}  // namespace

std::optional<CompressionSpec> read_compression(const Settings& in, const Algorithms& own) {
  const Setting& name = in.at("compression.method");
  if (name.text == "none") return std::nullopt;
  const auto methods = own.compressors();
  const auto found = std::find_if(methods.begin(), methods.end(), [&](const Compressor* method) {
    return method->name == name.text;
  });
  if (found == methods.end()) {
    const std::vector<std::string> known = known_methods(own);
    const std::string near = nearest(name.text, known);
    fail(name.mark,
         "compression.method is " + quote(name.text) +
             (near.empty() ? "; allowed: " + join(known, ", ") : "; did you mean " + near + "?"));
  }
  const Compressor& method = **found;
  const Setting& communicator = in.at("compression.communicator");
  const char* own_exchange = method.exchange == Func::all_reduce ? "all_reduce" : "all_gather";
  if (communicator.text != "auto" && communicator.text != own_exchange)
    fail(communicator.mark,
         "compression.communicator: payloads of " + name.text +
             (method.exchange == Func::all_reduce ? " are added up, and so all-reduced"
                                                  : " cannot be added up, and so are gathered") +
             "; use " + own_exchange + " or auto");
  return CompressionSpec{&method, {in.number("compression.ratio")}};
}

void compress(const JobSpec& spec, Workload& workload) {
  if (!spec.compression) return;
  const Framework framework = spec.parallel.framework;
  if (!reduces_whole_tensors(framework))
    throw Error(
        spec.source_of("compression.method") + ": " + std::string(spec.compression->method->name) +
        " does not go with framework " + std::string(name_of(framework)) +
        ", which scatters sums of gradients or reduces parts of them: payloads are of whole "
        "tensors; use parallel.framework=ddp, horovod, wfbp or mgwfbp, or compression.method=none");
  for (Role& role : workload.roles)
    for (Program& program : role.iterations) Pass(spec, workload, program).run();
}

void check_compressed(const JobSpec& spec, const Workload& workload) {
  if (spec.compression.has_value() == !workload.compressed.empty()) return;
  if (spec.compression)
    throw Error(spec.source_of("compression.method") +
                ": the program is played as it is, and exchanges nothing compressed; leave "
                "compression out, or give the model in place of the program");
  throw Error(spec.source_of("program") +
              ": the program exchanges compressed tensors, but the job does not say how; give it "
              "the compression that it was planned with");
}

}  // namespace ghostrank
