#include "profiles/planners/compression/compression.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/compress/power_sgd.h"
#include "collectives/tensor_content.h"
#include "profiles/algorithms/algorithms.h"
#include "profiles/error.h"
#include "profiles/model/model.h"
#include "profiles/planners/compression/samples.h"
#include "profiles/planners/compression/step_sizes.h"
#include "profiles/planners/compression/times.h"
#include "profiles/training/gradient_state.h"

namespace ghostrank {
namespace {

constexpr int kMostNaturalLevels = 31;  // of dithering, which counts them in 32 bits

Picoseconds picos(double nanoseconds) { return std::llround(nanoseconds * 1e3); }

// Rows of the model's tensors in the order in which ddp and horovod reduce them one by one: the
// last registered first. Empty: they are not reduced one by one, or no tensor has a shape.
std::vector<std::uint64_t> rows_of_tensors(const JobSpec& spec) {
  if (!spec.model || spec.compression->merge != Merge::tensor) return {};
  std::vector<std::uint64_t> rows;
  bool shaped = false;
  for (auto layer = spec.model->layers.rbegin(); layer != spec.model->layers.rend(); ++layer)
    for (auto tensor = layer->parameters.rbegin(); tensor != layer->parameters.rend(); ++tensor) {
      rows.push_back(tensor->first_dimension());
      shaped = shaped || tensor->rows > 0;
    }
  return shaped ? rows : std::vector<std::uint64_t>{};
}

// All tensors in the order in which ddp reduces them: the last registered first.
std::vector<TensorShape> shapes_of_tensors(const Model& model) {
  std::vector<TensorShape> shapes;
  for (auto layer = model.layers.rbegin(); layer != model.layers.rend(); ++layer)
    for (auto tensor = layer->parameters.rbegin(); tensor != layer->parameters.rend(); ++tensor)
      shapes.push_back({tensor->first_dimension(), tensor->numel / tensor->first_dimension()});
  return shapes;
}

std::uint64_t calls_of(const Program& program) {
  std::uint64_t calls = 0;
  for (const OpList& stream : program.streams) {
    const std::vector<std::uint64_t> times = stream.times();
    for (std::size_t i = 0; i < times.size(); ++i)
      if (const Op& op = stream.distinct()[i]; op.kind == Op::Kind::collective && op.tensor != 0)
        calls += times[i];
  }
  return calls;
}

// Data of all passes over a job's programs, because roles share their calls.
struct Shared {
  // By step and tensor: the list of the ranks' sizes. Without `steps` every step counts as step 0.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> lists;
  std::unique_ptr<StepSizes> steps;             // null: sizes are the same in every step
  std::map<std::uint32_t, TensorRange> ranges;  // by tensor; empty: all gradients have one law
};

// The pass over one role's program, of a step if sizes differ from step to step.
class Pass {
 public:
  Pass(const JobSpec& spec, Workload& workload, Program& program, Shared& shared,
       std::uint32_t step)
      : spec_(spec),
        method_(*spec.compression->method),
        workload_(workload),
        program_(program),
        shared_(shared),
        step_(step),
        rows_(rows_of_tensors(spec)),
        shapes_(spec.compression->merge == Merge::matrices ? shapes_of_tensors(*spec.model)
                                                           : std::vector<TensorShape>{}),
        samples_(spec, calls_of(program)) {}

  void run() {
    for (std::size_t s = 0; s < program_.streams.size(); ++s) {
      OpList& stream = program_.streams[s];
      workers_ = workers(program_, s);
      stream = stream.rewritten([&](const Op& op, OpList& out) { append(op, out); });
      stream.shrink_to_fit();
    }
  }

 private:
  void append(Op op, OpList& out) {
    // A payload leaves when it is ready, not together with others.
    if (op.tensor != 0) op.launch = op.launch_index = 0;
    if (op.kind != Op::Kind::collective || op.tensor == 0 || op.count == 0)
      return out.push_back(op);
    if (op.dtype != DataType::float32 && op.dtype != DataType::bfloat16)
      throw Error(spec_.source_of("precision.gradients") + ": gradients of " +
                  std::string(name_of(op.dtype)) +
                  " cannot be compressed; use fp32 or bf16, or compression.method=none");
    if (spec_.run.verify && op.count > method_.most_elements)
      throw Error(spec_.source_of("compression.method") + ": " + std::string(method_.name) +
                  " numbers elements of real data in 32 bits, and a call of this job has " +
                  std::to_string(op.count) + "; use another method, or run.verify=false");
    const CompressedTensor tensor{
        op.tensor,    op.dtype,    op.count, op.tensor <= rows_.size() ? rows_[op.tensor - 1] : 0,
        parts_of(op), first_of(op)};
    check_rank(tensor);
    auto& known = workload_.compressed;
    if (std::find(known.begin(), known.end(), tensor) == known.end()) known.push_back(tensor);
    const CompressionTime time = compression_time(*spec_.compression, op.count);
    out.push_back(
        delay("compress", time.compress_ns + memory_time_ns(spec_.compression->memory, op.count)));
    const double received =
        method_.measure ? exchange_measured(op, tensor, out) : exchange_fixed(op, tensor, out);
    if (const double staging = staging_time_ns(*spec_.compression, received); staging > 0)
      out.push_back(delay(std::string(kStaging), staging));
    out.push_back(delay("decompress", decompressed(op.count, time)));
  }

  // Appends the exchange; returns the bytes of payloads that a rank receives where they are
  // gathered.
  double exchange_fixed(const Op& op, const CompressedTensor& tensor, OpList& out) {
    if (spec_.compression->exchange == PayloadExchange::all_to_all)
      return exchange_parts(op, tensor, out);
    double received = 0;
    for (int round = 0; round < method_.rounds; ++round) {
      CompressionOptions options = spec_.compression->options;
      options.rows = tensor.rows;
      options.parts = tensor.parts;
      options.round = round;
      Op exchange = op;
      exchange.func = method_.exchange;
      exchange.dtype = method_.payload;
      exchange.count = method_.size(op.count, options);
      exchange.tensor = op.tensor + round * kSecondRound;
      const std::vector<std::uint64_t> sizes(static_cast<std::size_t>(workload_.ranks),
                                             exchange.count);
      if (spec_.compression->exchange == PayloadExchange::broadcast)
        broadcast(exchange, sizes, out);
      else if (exchange.count > 0) {
        if (received > 0) fence(out);  // a round starts from the sums of those before
        out.push_back(exchange);
      }
      received += static_cast<double>(exchange.count * bytes_of(exchange.dtype));
    }
    return received * (workload_.ranks - 1);
  }

  // Makes the next call wait for the ones before. Where one worker serves the stream, it does
  // anyway.
  void fence(OpList& out) {
    if (workers_ > 1) out.push_back(delay("fence", 0));
  }

  // One after the other, every rank is root; `sizes`: of their payloads, which may be empty.
  static void broadcast(Op op, const std::vector<std::uint64_t>& sizes, OpList& out) {
    op.func = Func::broadcast;
    op.counts = 0;
    for (std::size_t root = 0; root < sizes.size(); ++root) {
      op.peer = static_cast<std::int32_t>(root);
      op.count = sizes[root];
      out.push_back(op);
    }
  }

  // Every rank sums up one part of the tensor, compresses the sum and gives it to the others.
  double exchange_parts(const Op& op, const CompressedTensor& tensor, OpList& out) {
    const std::uint64_t ranks = workload_.ranks;
    const std::uint64_t part = (op.count + ranks - 1) / ranks;
    CompressionOptions options = spec_.compression->options;
    options.rows = tensor.rows;
    const CompressionTime time = compression_time(*spec_.compression, part);
    Op exchange = op;
    exchange.dtype = method_.payload;
    exchange.count = method_.size(part, options);
    exchange.func = Func::all_to_all;
    out.push_back(exchange);
    out.push_back(delay("sum", static_cast<double>(ranks) * time.decompress_ns + time.compress_ns));
    exchange.func = Func::all_gather;
    exchange.tensor += kSecondRound;
    out.push_back(exchange);
    return 2.0 * static_cast<double>(exchange.count * bytes_of(exchange.dtype)) *
           (workload_.ranks - 1);
  }

  // Appends an exchange in which ranks first tell each other how much they will send (8 bytes for
  // values and 8 for indices). Returns the bytes that a rank receives if all others send the mean.
  double exchange_measured(const Op& op, const CompressedTensor& tensor, OpList& out) {
    Op lengths = op;
    lengths.func = Func::all_gather;
    lengths.dtype = DataType::int64;
    lengths.count = 2;
    lengths.tensor = 0;
    out.push_back(lengths);
    fence(out);  // ranks receive payloads of the lengths that they were told
    Op exchange = op;
    exchange.func = Func::all_gather_v;
    exchange.dtype = method_.payload;
    exchange.count = 0;
    exchange.counts = list_of(op, tensor);
    if (spec_.compression->exchange == PayloadExchange::broadcast)
      broadcast(exchange, *workload_.counts[exchange.counts], out);
    else
      out.push_back(exchange);
    const double mean = static_cast<double>(elements_of(workload_, exchange)) / workload_.ranks;
    return mean * bytes_of(exchange.dtype) * (workload_.ranks - 1);
  }

  std::uint32_t list_of(const Op& op, const CompressedTensor& tensor) {
    const std::pair<std::uint32_t, std::uint32_t> key{shared_.steps ? step_ : 0, op.tensor};
    const auto known = shared_.lists.find(key);
    if (known != shared_.lists.end()) return known->second;
    std::vector<std::uint64_t> sizes;
    for (std::uint32_t g = 0; g < workload_.groups.size(); ++g) {
      const Group& group = workload_.groups[g];
      if (group.kind != op.group) continue;
      if (!sizes.empty())
        throw Error(spec_.source_of("compression.method") + ": payloads of " +
                    std::string(method_.name) +
                    " have sizes of their own in every communicator, and the plan has several of "
                    "one kind; use a method of fixed size");
      if (shared_.steps) {
        sizes = shared_.steps->of(step_, g, static_cast<int>(group.members.size()), tensor);
        continue;
      }
      const DrawnPart sample = samples_.of(tensor.elements);
      for (GroupRank r = 0; r < static_cast<GroupRank>(group.members.size()); ++r)
        sizes.push_back(r < sample.ranks ? size_of(tensor, sample.elements, g, r)
                                         : sizes[static_cast<std::size_t>(r % sample.ranks)]);
    }
    const auto list = static_cast<std::uint32_t>(workload_.counts.size());
    workload_.counts.push_back(std::make_shared<const std::vector<std::uint64_t>>(sizes));
    return shared_.lists[key] = list;
  }

  // Elements of a rank's payload of the tensor, of which so many elements are drawn.
  std::uint64_t size_of(const CompressedTensor& tensor, std::uint64_t drawn, std::uint32_t group,
                        GroupRank rank) const {
    std::vector<float> part(drawn);
    const std::uint64_t key = tensor_key(spec_.run.seed, group, tensor.tensor, 0);
    CompressionOptions options = spec_.compression->options;
    options.rows = tensor.rows;
    options.shared_seed = key;
    options.seed = rank_seed(key, rank);
    spec_.gradients.draw(options.seed, 0, tensor.first, tensor.elements, part);
    complete_norm(part, tensor.elements, options);
    return payload_of_whole(method_.measure(part, options), drawn, tensor.elements);
  }

  // Nanoseconds to decompress after an exchange: one payload, those of all ranks, or those of all
  // ranks' parts of the tensor.
  double decompressed(std::uint64_t elements, const CompressionTime& whole) const {
    const std::uint64_t ranks = workload_.ranks;
    if (method_.exchange == Func::all_reduce) return whole.decompress_ns;
    const bool parts = spec_.compression->exchange == PayloadExchange::all_to_all;
    return static_cast<double>(ranks) *
           (parts
                ? compression_time(*spec_.compression, (elements + ranks - 1) / ranks).decompress_ns
                : whole.decompress_ns);
  }

  // The tensors that the op reduces, if they are compressed one by one: a program's calls reduce
  // all tensors of the model, in the order in which their gradients get ready.
  std::vector<TensorShape> parts_of(const Op& op) {
    if (spec_.compression->merge != Merge::matrices) return {};
    std::vector<TensorShape> parts;
    for (std::uint64_t left = op.count; left > 0; left -= parts.back().rows * parts.back().columns)
      parts.push_back(shapes_.at(next_shape_++));
    return parts;
  }

  std::uint64_t first_of(const Op& op) const {
    const auto range = shared_.ranges.find(op.tensor);
    return range == shared_.ranges.end() ? 0 : range->second.first;
  }

  // Refuses a rank that the matrix cannot have.
  void check_rank(const CompressedTensor& tensor) const {
    if (method_.rounds != 2 || tensor.rows <= 1 || tensor.rows >= tensor.elements) return;
    const std::uint64_t most = std::min(tensor.rows, tensor.elements / tensor.rows);
    if (static_cast<std::uint64_t>(spec_.compression->options.rank) <= most) return;
    throw Error(spec_.source_of("compression.rank") + ": rank " +
                std::to_string(spec_.compression->options.rank) + " is larger than a matrix of " +
                std::to_string(tensor.rows) + " x " +
                std::to_string(tensor.elements / tensor.rows) + " gradients; use at most " +
                std::to_string(most));
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
  Workload& workload_;
  Program& program_;
  Shared& shared_;
  const std::uint32_t step_;
  const std::vector<std::uint64_t> rows_;
  const std::vector<TensorShape> shapes_;
  std::size_t next_shape_ = 0;
  int workers_ = 1;  // of the stream that is written
  const DrawnParts samples_;
};

bool reduces_whole_tensors(Framework framework) {
  return framework == Framework::ddp || framework == Framework::horovod ||
         framework == Framework::wfbp || framework == Framework::mgwfbp;
}

void check_merge(const JobSpec& spec) {
  const Framework framework = spec.parallel.framework;
  const Merge merge = spec.compression->merge;
  const std::string where = spec.source_of("compression.merge") + ": ";
  if (merge == Merge::tensor && framework != Framework::ddp && framework != Framework::horovod)
    throw Error(where + "framework " + std::string(name_of(framework)) +
                " merges tensors by a rule of its own; use parallel.framework=ddp or horovod, or "
                "compression.merge=bucket");
  if (merge == Merge::matrices &&
      (framework != Framework::ddp || spec.compression->method->rounds == 1))
    throw Error(where +
                "matrices is what DDP's powerSGD_hook does; use parallel.framework=ddp with "
                "compression.method=powersgd, or compression.merge=bucket");
  if (merge == Merge::model && framework != Framework::ddp)
    throw Error(where +
                "only ddp can hold all gradients back for one call; use "
                "parallel.framework=ddp, or compression.merge=bucket");
  if (merge == Merge::tensor && spec.parallel.launch == Launch::flat)
    throw Error(where +
                "launch flat is one call for all gradients; use parallel.launch=overlap or "
                "after_backward, or compression.merge=model");
}

// Checks what ranks carry from step to step. Verified runs carry real data, so one process must
// have all ranks.
void check_carried(const JobSpec& spec, const Workload& workload) {
  if (!carries_gradients(spec)) return;
  const std::string where = spec.source_of(spec.training ? "training.task" : "compression.memory");
  if (spec.training && !spec.run.verify)
    throw Error(where +
                ": training.task: only ranks with real data can learn; add run.verify=true");
  if (spec.training && (spec.gradients.drift() || !spec.gradients.parts.empty()))
    throw Error(where +
                ": training.task: gradients are those of what ranks learn, and follow no law; "
                "leave the rules of tensors.distribution and tensors.drift out");
  if (spec.training && !reduces_whole_tensors(spec.parallel.framework))
    throw Error(where + ": framework " + std::string(name_of(spec.parallel.framework)) +
                " does not reduce whole gradients, which ranks learn from; use "
                "parallel.framework=ddp, horovod, wfbp or mgwfbp");
  if (spec.training && !spec.compression && spec.precision.gradients != DataType::float32)
    throw Error(where + ": gradients of " + std::string(name_of(spec.precision.gradients)) +
                " are not learned from; use precision.gradients=fp32, or compression.method=fp16");
  if (spec.run.verify && is_network(spec.fabric.kind))
    throw Error(where +
                ": in verified runs ranks compare what they received with what others kept, which "
                "other processes do not know; use fabric.kind=memory or virtual, or "
                "run.verify=false");
  if (!spec.run.verify) return;
  const std::uint64_t elements = elements_of(tensor_ranges(spec, workload));
  if (elements == 0)
    throw Error(where + ": no call of this job reduces gradients that ranks could " +
                (spec.training ? "learn from" : "keep"));
  check_task(spec, workload.ranks, elements);
}

// Where the tensors lie among the gradients to which the job gives laws.
std::map<std::uint32_t, TensorRange> ranges_of_laws(const JobSpec& spec, const Workload& workload) {
  const auto ranges = tensor_ranges(spec, workload);
  if (const std::uint64_t all = elements_of(ranges); all != spec.gradients.elements())
    throw Error(spec.source_of("tensors.distribution") + ": the plan reduces " +
                std::to_string(all) + " elements in a step and the model has " +
                std::to_string(spec.gradients.elements()) +
                " gradients, because fused buffers pad their tensors; laws by tensor need "
                "compression.merge=tensor, or parallel.framework=ddp");
  return ranges;
}

// Gives every step a program of its own, because ranks send other numbers of elements in each.
void plan_steps(const JobSpec& spec, Workload& workload, Shared& shared) {
  const std::string_view longer = spec.run.min_seconds > 0    ? "run.min_seconds"
                                  : spec.run.end.duration > 0 ? "run.duration"
                                  : spec.run.end.ci95 > 0     ? "run.until.ci95_percent"
                                                              : "";
  if (spec.run.verify && !longer.empty())
    throw Error(spec.source_of(std::string(longer)) + ": payloads of " +
                std::string(spec.compression->method->name) +
                " change their sizes from step to step and are planned for run.iterations of them; "
                "leave " +
                std::string(longer) + " out of verified runs");
  const Program& steady = workload.roles.front().iterations.back();
  shared.steps =
      std::make_unique<StepSizes>(spec, workload, rows_of_tensors(spec), calls_of(steady));
  for (Role& role : workload.roles) {
    std::vector<Program> programs;
    for (std::uint32_t step = 0; step < shared.steps->steps(); ++step)
      programs.push_back(
          role.iterations[std::min(program_number(workload, step), role.iterations.size() - 1)]);
    role.iterations = std::move(programs);
  }
  workload.order.clear();
  workload.cycle = 1;
}

std::vector<std::string> known_methods(const Algorithms& own) {
  std::vector<std::string> names{"none"};
  for (const Compressor* method : own.compressors()) names.emplace_back(method->name);
  return names;
}

// Refuses an exchange that does not suit the method: every rank must obtain one sum.
PayloadExchange read_exchange(const Setting& said, const Compressor& method) {
  const bool adds = method.exchange == Func::all_reduce;
  const PayloadExchange own = adds ? PayloadExchange::all_reduce : PayloadExchange::all_gather;
  if (said.text == "auto" || said.text == (adds ? "all_reduce" : "all_gather")) return own;
  const std::string name(method.name), where = "compression.communicator: payloads of " + name;
  if (adds) fail(said.mark, where + " are added up, and so all-reduced; use all_reduce or auto");
  if (said.text == "all_reduce")
    fail(said.mark, where + " cannot be added up, and so are gathered; use all_gather or auto");
  if (said.text == "broadcast") return PayloadExchange::broadcast;
  // all_to_all sends a payload per part of the tensor, then one of each part's sum.
  if (method.majority || method.measure || method.kept)
    fail(said.mark, where +
                        (method.majority ? " are votes, whose sum is none"
                                         : " are elements of the whole tensor, of which parts "
                                           "would be others") +
                        "; all_to_all is for methods that send every element, as qsgd, terngrad "
                        "or natural; use all_gather, broadcast or auto");
  return PayloadExchange::all_to_all;
}

// Ratios that follow the network, if the job wants them to.
std::optional<RatioLimits> read_limits(const Settings& in, const Compressor& method,
                                       PayloadExchange exchange) {
  const double budget_ms = in.number("compression.budget_ms");
  if (budget_ms <= 0) return std::nullopt;
  if (!method.kept || method.measure || method.rounds != 1)
    fail(in.at("compression.budget_ms").mark,
         "compression.budget_ms: what " + std::string(method.name) +
             " sends does not follow from a ratio alone; use compression.method=topk or randomk");
  if (exchange == PayloadExchange::broadcast)
    fail(in.at("compression.budget_ms").mark,
         "compression.budget_ms: the controller measures the calls of one exchange, and broadcasts "
         "are one for each rank; use compression.communicator=auto");
  const RatioLimits limits{budget_ms * 1e-3, in.number("compression.least_ratio"),
                           in.number("compression.most_ratio")};
  if (limits.least >= limits.most)
    fail(in.at("compression.least_ratio").mark,
         "compression.least_ratio: " + in.text("compression.least_ratio") +
             " leaves no choice; give less than compression.most_ratio (" +
             in.text("compression.most_ratio") + ")");
  return limits;
}

}  // namespace

std::optional<CompressionSpec> read_compression(const Settings& in, const Algorithms& own,
                                                const DeviceProfile& device,
                                                const std::string& folder) {
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
  const PayloadExchange exchange = read_exchange(in.at("compression.communicator"), method);
  const Setting& memory = in.at("compression.memory");
  Memory kept = Memory::none;
  for (const Memory one :
       {Memory::residual, Memory::efsignsgd, Memory::dgc, Memory::powersgd, Memory::nesterov})
    if (memory.text == name_of(one)) kept = one;
  if (const std::string why = why_refused(kept, method); !why.empty())
    fail(memory.mark, "compression.memory " + memory.text + ": " + why);
  if (kept != Memory::none && exchange == PayloadExchange::all_to_all)
    fail(memory.mark, "compression.memory " + memory.text +
                          ": all_to_all compresses sums once more, and what that loses no rank "
                          "keeps; use compression.communicator=all_gather, or memory none");
  CompressionOptions options;
  options.ratio = in.number("compression.ratio");
  options.quantum = in.small("compression.quantum");
  options.natural = in.text("compression.partition") == "natural";
  options.l2 = in.text("compression.normalize") == "l2";
  if (options.natural && options.quantum > kMostNaturalLevels)
    fail(in.at(in.given("compression.quantum") ? "compression.quantum" : "compression.partition")
             .mark,
         "compression.quantum is " + in.text("compression.quantum") +
             ", and the levels of partition natural are powers of two; use at most " +
             std::to_string(kMostNaturalLevels));
  options.threshold = in.number("compression.threshold");
  options.rank = in.small("compression.rank");
  options.quantiles = in.small("compression.quantiles");
  options.error_bound = in.number("compression.error_bound");
  options.stages = in.small("compression.stages");
  const std::string& merge = in.text("compression.merge");
  CompressionSpec spec{&method, options,
                       merge == "tensor"     ? Merge::tensor
                       : merge == "model"    ? Merge::model
                       : merge == "matrices" ? Merge::matrices
                                             : Merge::bucket};
  const Setting& costs = in.at("compression.costs");
  if (costs.text != "v100") {
    MeasuredTimes times = read_compression_times(costs, folder, method.name);
    spec.measured = std::move(times.rows);
    // A table that names no device is taken for the job's.
    spec.measured_here = device.source.find(times.device) != std::string::npos;
  }
  spec.gather_us = in.number("compression.gather_us");
  spec.gather_ns = in.number("compression.gather_ns");
  spec.memory = kept;
  spec.exchange = exchange;
  spec.min_bytes = in.integer("compression.min_bytes");
  spec.adapts = read_limits(in, method, exchange);
  if (spec.adapts) spec.options.ratio = spec.adapts->least;  // a plan has what every step sends
  if (spec.merge == Merge::matrices && method.name == kPowerSgdOfParts.name)
    spec.method = &kPowerSgdOfParts;
  return spec;
}

void compress(const JobSpec& spec, Workload& workload) {
  check_carried(spec, workload);
  if (!spec.compression) return;
  const Framework framework = spec.parallel.framework;
  if (!reduces_whole_tensors(framework))
    throw Error(
        spec.source_of("compression.method") + ": " + std::string(spec.compression->method->name) +
        " does not go with framework " + std::string(name_of(framework)) +
        ", which scatters sums of gradients or reduces parts of them: payloads are of whole "
        "tensors; use parallel.framework=ddp, horovod, wfbp or mgwfbp, or compression.method=none");
  check_merge(spec);
  Shared shared;
  if (spec.compression->method->measure && !spec.gradients.parts.empty())
    shared.ranges = ranges_of_laws(spec, workload);
  if (spec.compression->method->measure && steps_differ(spec)) plan_steps(spec, workload, shared);
  for (Role& role : workload.roles)
    for (std::size_t i = 0; i < role.iterations.size(); ++i)
      Pass(spec, workload, role.iterations[i], shared, static_cast<std::uint32_t>(i)).run();
}

void check_compressed(const JobSpec& spec, const Workload& workload) {
  check_carried(spec, workload);
  if (spec.compression && !spec.gradients.parts.empty())
    throw Error(spec.source_of("tensors.distribution") +
                ": laws by tensor decided the sizes when the program was planned, and the program "
                "names no tensors; give one law");
  if (spec.compression && spec.compression->adapts)
    throw Error(spec.source_of("compression.budget_ms") +
                ": compression.budget_ms: the program is played as it is, with the ratios that it "
                "was planned with; leave it out");
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
