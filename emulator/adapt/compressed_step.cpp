#include "emulator/adapt/compressed_step.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <string>

#include "profiles/planners/compression/times.h"

namespace ghostrank {
namespace {

double seconds_of(Picoseconds time) { return static_cast<double>(time) * 1e-12; }

// The number of the program that all later iterations play. All ranks of ddp play one role, or
// roles with equally many programs.
std::uint32_t steady_program(const Workload& workload) {
  const std::size_t programs = workload.roles.front().iterations.size();
  return static_cast<std::uint32_t>(
      std::min(program_number(workload, workload.order.size() + programs), programs - 1));
}

CompressionOptions options_at(const JobSpec& spec, double ratio) {
  CompressionOptions options = spec.compression->options;
  options.ratio = ratio;
  return options;
}

// Whether the stream exchanges payloads; those of background do not.
bool exchanges(const Workload& workload, const OpList& stream) {
  return std::any_of(stream.begin(), stream.end(),
                     [&](const Op& op) { return compressed_tensor(workload, op) != nullptr; });
}

}  // namespace

CompressedStep compressed_step(const JobSpec& spec, const Workload& workload) {
  const Program& program = workload.roles.front().iterations[steady_program(workload)];
  CompressedStep step;
  // When the compute stream records each event; it may record one again after a wait took it.
  std::map<std::uint32_t, std::deque<double>> recorded;
  double now = 0;
  for (const Op& op : program.streams[0]) {
    // The compute stream waits for nothing before the exchanged gradients, so its times add up.
    if (op.kind == Op::Kind::compute) now += seconds_of(op.duration);
    if (op.kind == Op::Kind::record) recorded[op.event].push_back(now);
  }
  step.compute = now;
  const double staged_call = 1e-9 * staging_time_ns(*spec.compression, 0);
  step.staged_byte = 1e-9 * staging_time_ns(*spec.compression, workload.ranks - 1) - staged_call;
  for (std::size_t s = 1; s < program.streams.size(); ++s) {
    if (!exchanges(workload, program.streams[s])) continue;
    for (const Op& op : program.streams[s]) {
      StreamPart part;
      if (op.kind == Op::Kind::wait && !recorded[op.event].empty()) {
        part = {StreamPart::Kind::wait, recorded[op.event].front(), 0};
        recorded[op.event].pop_front();
        step.computed = std::max(step.computed, part.seconds);
      } else if (op.kind == Op::Kind::compute) {
        const bool stages = program.labels[op.label] == kStaging;
        part = {StreamPart::Kind::compute, stages ? staged_call : seconds_of(op.duration), 0};
      } else if (const CompressedTensor* tensor = compressed_tensor(workload, op)) {
        part = {StreamPart::Kind::send, 0, step.calls.size()};
        step.calls.push_back({op.tensor, tensor->elements});
      } else {
        continue;
      }
      step.stream.push_back(part);
    }
  }
  return step;
}

Program with_ratios(const JobSpec& spec, const Workload& workload, const CompressedStep& step,
                    const Program& program, const std::vector<double>& ratios) {
  std::map<std::uint32_t, std::uint64_t> counts;  // by tensor
  for (std::size_t c = 0; c < step.calls.size(); ++c)
    counts[step.calls[c].tensor] =
        spec.compression->method->size(step.calls[c].elements, options_at(spec, ratios[c]));
  Program changed = program;
  for (OpList& stream : changed.streams) {
    double received = 0;  // bytes, by the call before
    stream = stream.changed([&](Op op) {
      if (op.kind == Op::Kind::collective && compressed_tensor(workload, op)) {
        op.count = counts.at(op.tensor);
        received = static_cast<double>(op.count * bytes_of(op.dtype)) * (workload.ranks - 1);
      }
      if (op.kind == Op::Kind::compute && received > 0 && program.labels[op.label] == kStaging)
        op.duration = std::llround(1e3 * staging_time_ns(*spec.compression, received));
      return op;
    });
  }
  return changed;
}

Workload with_ratios(const JobSpec& spec, const Workload& workload, const CompressedStep& step,
                     std::span<const std::vector<double>> by_step) {
  Workload changed = workload;
  changed.order.clear();
  changed.cycle = 1;
  for (Role& role : changed.roles) {
    const Program steady = std::move(role.iterations[steady_program(workload)]);
    role.iterations.clear();
    for (const std::vector<double>& ratios : by_step)
      role.iterations.push_back(with_ratios(spec, workload, step, steady, ratios));
  }
  return changed;
}

double share_of(const JobSpec& spec, const CompressedStep& step, std::span<const double> ratios) {
  std::uint64_t sent = 0, all = 0;
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    const std::uint64_t elements = step.calls[i].elements;
    sent += spec.compression->method->kept(elements, options_at(spec, ratios[i]));
    all += elements;
  }
  return static_cast<double>(sent) / static_cast<double>(all);
}

double payload_at(const JobSpec& spec, const SentTensor& call, double ratio) {
  return static_cast<double>(
      payload_bytes(*spec.compression->method, call.elements, options_at(spec, ratio)));
}

}  // namespace ghostrank
