// How cost grows with ranks (10 to 100,000 in one process), with message size, and with flows
// between two processes. The section consists of pictures of medians, without a table.
#include <optional>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "tools/benchmarks/found.h"
#include "tools/benchmarks/two_processes.h"
#include "tools/text/svg.h"

namespace ghostrank::bench {
namespace {

std::optional<InChild> seconds_alone(const BenchJob& job) {
  return in_child([&] { return play_alone(job).played_wall_seconds; });
}

std::optional<InChild> seconds_as_two(const BenchJob& job) {
  const auto result = play_as_two(job);
  if (!result) return std::nullopt;
  return InChild{result->played_wall_seconds, 0};
}

// Rings of ten with 4 KiB pieces, about a million messages in all.
void Ranks(benchmark::State& state, FabricKind kind) {
  const auto ranks = static_cast<int>(state.range(0));
  const int calls = std::max(1, 1'000'000 / (ranks * 18));
  const BenchJob job =
      collective_job(kind, ranks, 10, collective(Func::all_reduce, 10 * 1024), calls);
  const double messages = 18.0 * calls * ranks;
  for (auto _ : state) {
    const auto played = seconds_alone(job);
    if (!played) return state.SkipWithError("the run did not end well");
    state.SetIterationTime(played->said);
    state.counters["ns_per_message"] = played->said * 1e9 / messages;
    state.counters["resident_MiB"] = played->most_resident_kib / 1024;
  }
}

// 200,000 messages, or about 1 GiB of them where that is fewer and payload is touched.
constexpr std::uint64_t kMessages = 200'000;
std::uint64_t messages_of(std::uint64_t bytes) {
  return std::min<std::uint64_t>(kMessages, (1 << 30) / bytes);
}

void Size(benchmark::State& state, PayloadMode payload) {
  const auto bytes = static_cast<std::uint64_t>(state.range(0));
  const std::uint64_t messages = payload == PayloadMode::copied ? messages_of(bytes) : kMessages;
  BenchJob job = collective_job(FabricKind::memory, 2, 2,
                                collective(Func::broadcast, messages * bytes / 4), 1);
  job.job.spec.collectives.slice_bytes = bytes;
  job.job.spec.fabric.payload = payload;
  for (auto _ : state) {
    const auto played = seconds_alone(job);
    if (!played) return state.SkipWithError("the run did not end well");
    state.SetIterationTime(played->said);
    state.counters["us_per_message"] = played->said * 1e6 / static_cast<double>(messages);
  }
}

void SizeOverLibfabric(benchmark::State& state) {
  const auto bytes = static_cast<std::uint64_t>(state.range(0));
  const BenchJob job = stream_job(2, messages_of(bytes), bytes);
  for (auto _ : state) {
    const auto played = seconds_as_two(job);
    if (!played) return state.SkipWithError("the run did not end well");
    state.SetIterationTime(played->said);
    state.counters["us_per_message"] = played->said * 1e6 / static_cast<double>(messages_of(bytes));
  }
}

// 20,000 messages of 16 KiB between pairs of ranks, each pair on a flow (5-tuple) of its own, or
// all on one flow.
void Flows(benchmark::State& state, FlowKind kind) {
  const auto pairs = static_cast<int>(state.range(0));
  const std::uint64_t each = 20'000 / pairs;
  BenchJob job = stream_job(2 * pairs, each, 16 << 10);
  job.job.spec.fabric.flows = kind;
  const double messages = static_cast<double>(each) * pairs;
  for (auto _ : state) {
    const auto played = seconds_as_two(job);
    if (!played) return state.SkipWithError("the run did not end well");
    state.SetIterationTime(played->said);
    state.counters["us_per_message"] = played->said * 1e6 / messages;
  }
}

void seven(benchmark::internal::Benchmark* b) {
  b->UseManualTime()->Iterations(1)->Repetitions(7)->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(Ranks, memory, FabricKind::memory)
    ->RangeMultiplier(10)
    ->Range(10, 100'000)
    ->Apply(seven);
BENCHMARK_CAPTURE(Ranks, virtual_time, FabricKind::virtual_time)
    ->RangeMultiplier(10)
    ->Range(10, 100'000)
    ->Apply(seven);
BENCHMARK_CAPTURE(Size, untouched, PayloadMode::untouched)
    ->RangeMultiplier(8)
    ->Range(64, 16 << 20)
    ->Apply(seven);
BENCHMARK_CAPTURE(Size, copied, PayloadMode::copied)
    ->RangeMultiplier(8)
    ->Range(64, 16 << 20)
    ->Apply(seven);
BENCHMARK(SizeOverLibfabric)->RangeMultiplier(8)->Range(64, 16 << 20)->Apply(seven);
BENCHMARK_CAPTURE(Flows, own, FlowKind::nic)->RangeMultiplier(4)->Range(1, 256)->Apply(seven);
BENCHMARK_CAPTURE(Flows, shared, FlowKind::process)
    ->RangeMultiplier(4)
    ->Range(1, 256)
    ->Apply(seven);

struct Curve {
  const char *benchmark, *name;
};
struct Picture {
  const char *file, *title, *across, *up, *counter;
  std::vector<Curve> curves;
};
const Picture kPictures[] = {
    {"growth-ranks.svg",
     "Cost of a message by ranks in one process",
     "ranks",
     "ns",
     "ns_per_message",
     {{"Ranks/memory", "memory"}, {"Ranks/virtual_time", "virtual time"}}},
    {"growth-memory.svg",
     "Resident memory by ranks in one process",
     "ranks",
     "MiB",
     "resident_MiB",
     {{"Ranks/memory", "memory"}, {"Ranks/virtual_time", "virtual time"}}},
    {"growth-size.svg",
     "Cost of a message by its size",
     "bytes",
     "microseconds",
     "us_per_message",
     {{"Size/copied", "copied"},
      {"SizeOverLibfabric", "libfabric"},
      {"Size/untouched", "untouched"}}},
    {"growth-flows.svg",
     "Cost of a message of 16 KiB by pairs of ranks",
     "pairs",
     "microseconds",
     "us_per_message",
     {{"Flows/own", "flow a pair"}, {"Flows/shared", "one flow"}}},
};

}  // namespace

Section section(const Found& found) {
  Section pictures;
  for (const Picture& p : kPictures) {
    SvgCurves curves{p.title, p.across, p.up, {}, SvgScale::by_tens};
    for (const Curve& curve : p.curves) {
      SvgLine line{curve.name, {}};
      for (const auto& [x, y] : found.curve(curve.benchmark, p.counter))
        line.points.push_back({x, y});
      curves.lines.push_back(line);
    }
    pictures.pictures[p.file] = svg_curves(curves);
  }
  return pictures;
}

}  // namespace ghostrank::bench
