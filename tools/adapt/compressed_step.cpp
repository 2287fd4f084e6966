#include "tools/adapt/compressed_step.h"

#include <algorithm>
#include <deque>
#include <map>
#include <string>

#include "profiles/error.h"

namespace ghostrank {
namespace {

double seconds_of(Picoseconds time) { return static_cast<double>(time) * 1e-12; }

// The number of the programs that all later iterations play. Ranks of ddp play one role, or roles
// with as many programs each.
std::uint32_t steady_program(const Workload& workload) {
  const std::size_t programs = workload.roles.front().iterations.size();
  return static_cast<std::uint32_t>(
      std::min(program_number(workload, workload.order.size() + programs), programs - 1));
}

void check(const JobSpec& spec) {
  if (!spec.compression)
    throw Error("the job compresses nothing; give it compression.method=topk or randomk");
  const Compressor& method = *spec.compression->method;
  if (!method.kept || method.measure || method.rounds != 1)
    throw Error(spec.source_of("compression.method") + ": what " + std::string(method.name) +
                " sends does not follow from a ratio alone; use compression.method=topk or "
                "randomk");
  if (spec.parallel.framework != Framework::ddp)
    throw Error(spec.source_of("parallel.framework") +
                ": ratios are adapted to plans of ddp; use parallel.framework=ddp");
}

CompressionOptions options_at(const JobSpec& spec, double ratio) {
  CompressionOptions options = spec.compression->options;
  options.ratio = ratio;
  return options;
}

}  // namespace

CompressedStep compressed_step(const JobSpec& spec, const Workload& workload) {
  check(spec);
  const Program& program = workload.roles.front().iterations[steady_program(workload)];
  CompressedStep step;
  // When the compute stream records an event, which it may do again after it was waited for.
  std::map<std::uint32_t, std::deque<double>> recorded;
  double now = 0;
  for (const Op& op : program.streams[0]) {
    // The compute stream goes on without waiting until gradients are exchanged.
    if (op.kind == Op::Kind::compute) now += seconds_of(op.duration);
    if (op.kind == Op::Kind::record) recorded[op.event].push_back(now);
  }
  step.compute = now;
  for (std::size_t s = 1; s < program.streams.size(); ++s)
    for (const Op& op : program.streams[s]) {
      StreamPart part;
      if (op.kind == Op::Kind::wait && !recorded[op.event].empty()) {
        part = {StreamPart::Kind::wait, recorded[op.event].front(), 0};
        recorded[op.event].pop_front();
        step.computed = std::max(step.computed, part.seconds);
      } else if (op.kind == Op::Kind::compute) {
        part = {StreamPart::Kind::compute, seconds_of(op.duration), 0};
      } else if (const CompressedTensor* tensor =
                     op.kind == Op::Kind::collective ? compressed_tensor(workload, op) : nullptr) {
        part = {StreamPart::Kind::send, 0, step.calls.size()};
        step.calls.push_back({op.tensor, tensor->elements});
      } else {
        continue;
      }
      step.stream.push_back(part);
    }
  return step;
}

Workload with_ratios(const JobSpec& spec, const Workload& workload, const CompressedStep& step,
                     std::span<const double> ratios) {
  std::map<std::uint32_t, std::uint64_t> counts;  // by tensor
  for (std::size_t i = 0; i < step.calls.size(); ++i)
    counts[step.calls[i].tensor] =
        spec.compression->method->size(step.calls[i].elements, options_at(spec, ratios[i]));
  Workload changed = workload;
  changed.order = {steady_program(workload)};
  changed.cycle = 1;
  for (Role& role : changed.roles)
    for (Program& program : role.iterations)
      for (OpList& stream : program.streams)
        stream = stream.changed([&](Op op) {
          if (op.kind == Op::Kind::collective && compressed_tensor(workload, op))
            if (const auto found = counts.find(op.tensor); found != counts.end())
              op.count = found->second;
          return op;
        });
  return changed;
}

double payload_at(const JobSpec& spec, const CompressedCall& call, double ratio) {
  return static_cast<double>(
      payload_bytes(*spec.compression->method, call.elements, options_at(spec, ratio)));
}

}  // namespace ghostrank
