#include "profiles/planners/horovod.h"

#include <algorithm>
#include <cmath>

#include "profiles/error.h"
#include "profiles/planners/shared/round_up.h"
#include "profiles/planners/shared/two_streams.h"
#include "profiles/workload/program_builder.h"

namespace ghostrank {
namespace {

constexpr std::size_t kClock = 1, kCycles = 2, kFused = 3;
constexpr std::uint16_t kController = kDataParallel + 1;
constexpr std::uint64_t kAlignment = 16;  // bytes; tensors in a fused buffer are rounded up to it
// Bytes; the fusion buffer is a multiple of this times the local ranks.
constexpr std::uint64_t kAtomicUnit = 8 * 64;
constexpr std::uint64_t kStatusBits = 4;          // shut down, uncached, invalid, joined
constexpr std::size_t kCacheCapacity = 1024;      // responses
constexpr std::uint64_t kMostCycles = 1'000'000;  // of a step

// Packs tensors, in their order, into fused buffers; returns the elements of each.
std::vector<std::uint64_t> fused(const std::vector<std::uint64_t>& tensors,
                                 std::uint32_t element_bytes, std::uint64_t threshold) {
  std::vector<std::uint64_t> buffers;
  for (std::size_t first = 0; first < tensors.size();) {
    std::uint64_t bytes = round_up(tensors[first] * element_bytes, kAlignment);
    std::size_t end = first + 1;
    for (; end < tensors.size(); ++end) {
      const std::uint64_t more = round_up(tensors[end] * element_bytes, kAlignment);
      if (bytes + more > threshold) break;
      bytes += more;
    }
    buffers.push_back(end == first + 1 ? tensors[first] : bytes / element_bytes);
    first = end;
  }
  return buffers;
}

// How long the latencies of the controller's all-reduce take around a ring over all ranks; 0: it is
// no ring, and a matter of few latencies.
Picoseconds around_ring(const JobSpec& spec) {
  const Algorithm* const row = spec.collectives.row(Func::all_reduce, "controller");
  if (row == nullptr || row->name != "ring") return 0;
  const ClusterSpec& cluster = spec.cluster;
  const double ranks = cluster.gpus();
  const double between = cluster.nodes > 1 ? cluster.nodes : 0;  // of the ring's hops
  const double once = between * static_cast<double>(cluster.nic.latency) +
                      (ranks - between) * static_cast<double>(cluster.intra_node.latency);
  return std::llround(2 * (ranks - 1) / ranks * once);
}

}  // namespace

std::vector<HorovodCycle> horovod_cycles(const Model& model, std::span<const LayerTime> times,
                                         std::uint32_t element_bytes, std::uint64_t threshold,
                                         Picoseconds cycle) {
  Picoseconds now = 0;
  for (const LayerTime& time : times) now += time.forward;
  std::vector<HorovodCycle> out;
  std::vector<std::uint64_t> ready;
  for (std::size_t layer = model.layers.size(); layer-- > 0;) {
    now += times[layer].backward;
    const auto& parameters = model.layers[layer].parameters;
    for (auto tensor = parameters.rbegin(); tensor != parameters.rend(); ++tensor)
      ready.push_back(tensor->numel);
    const Picoseconds number = std::max<Picoseconds>(1, (now + cycle - 1) / cycle);
    const bool goes_on = layer > 0 && now + times[layer - 1].backward <= number * cycle;
    if (ready.empty() || goes_on) continue;
    out.push_back(
        {static_cast<std::uint64_t>(number), layer, fused(ready, element_bytes, threshold)});
    ready.clear();
  }
  return out;
}

Workload plan_horovod(const JobSpec& spec) {
  check_data_parallel(spec);
  const Model& model = *spec.model;
  if (model.tensors() > kCacheCapacity)
    throw Error(spec.source_of("model") + ": the model has " + std::to_string(model.tensors()) +
                " tensors and Horovod's cache holds " + std::to_string(kCacheCapacity) +
                " responses; what ranks negotiate then is not available, use a smaller model");
  const StepTimes times = step_times(spec);
  const std::uint32_t element_bytes = bytes_of(spec.precision.gradients);
  const bool by_tensor = spec.compression && spec.compression->merge == Merge::tensor;
  const std::uint64_t threshold =
      by_tensor ? 0
                : round_up(static_cast<std::uint64_t>(spec.parallel.fusion_mb * (1 << 20)),
                           spec.cluster.gpus_per_node * kAtomicUnit);
  const Picoseconds cycle = std::max<Picoseconds>(
      std::llround(spec.parallel.cycle_ms * 1e3 * static_cast<double>(kPicosPerMicro)),
      around_ring(spec));
  const auto cycles = horovod_cycles(model, times.layers, element_bytes, threshold, cycle);
  const std::uint64_t words = (model.tensors() + kStatusBits + 63) / 64;

  const std::uint64_t last = cycles.empty() ? 0 : cycles.back().number;
  if (last > kMostCycles)
    throw Error(spec.source_of("parallel.cycle_ms") + ": a step would have " +
                std::to_string(last) + " cycles, at most " + std::to_string(kMostCycles) +
                " are played; use a larger parallel.cycle_ms");

  ProgramBuilder out({"compute", "clock", "cycles", "comm"});
  out.at_once(kCycles, kMaxAtOnce);  // so that no late answer holds up all later ones
  for (std::size_t i = 0; i < model.layers.size(); ++i)
    out.compute(kCompute, "forward " + model.layers[i].name, times.layers[i].forward);
  std::uint64_t number = 0;
  std::size_t tensor = 0;
  std::size_t layer = model.layers.size();
  const auto backward_to = [&](std::size_t end) {
    for (; layer > end; --layer)
      out.compute(kCompute, "backward " + model.layers[layer - 1].name,
                  times.layers[layer - 1].backward);
  };
  for (const HorovodCycle& found : cycles) {
    for (; number < found.number; ++number) {
      out.pace(kClock, "cycle", cycle);
      out.after(kCycles, kClock);
      if (number + 1 == found.number) {
        backward_to(found.layer);
        out.after(kCycles, kCompute);
      }
      out.collective(kCycles, "what is ready", Func::all_reduce, kController, DataType::int64,
                     words);
    }
    out.after(kFused, kCycles);
    for (const std::uint64_t elements : found.buffers)
      out.collective(kFused, "fused gradients", Func::all_reduce, kDataParallel,
                     spec.precision.gradients, elements, 0, ++tensor);
  }
  backward_to(0);
  out.after(kCompute, kFused);
  out.compute(kCompute, "optimizer", times.optimizer);

  Workload workload = data_parallel_workload(spec, {"horovod", {out.take()}});
  workload.group_names.emplace_back("controller");
  workload.groups.push_back({kController, workload.groups.front().members});
  return workload;
}

}  // namespace ghostrank
