// How cost grows: with ranks (10 to 100,000 in one process), with the size of messages, and with
// flows between two processes. Beside the counters there are pictures, in docs/pictures when
// GHOSTRANK_UPDATE is set and otherwise in the working directory's build/bench.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include <benchmark/benchmark.h>

#include "tools/bench/two_processes.h"
#include "tools/svg.h"

namespace ghostrank::bench {
namespace {

// What the benchmarks found: picture, curve, points.
std::map<std::string, std::map<std::string, std::vector<SvgPoint>>> found;

void note(benchmark::State& state, const std::string& picture, const std::string& curve, double x,
          double y) {
  found[picture][curve].push_back({x, y});
  state.counters[picture] = y;
}

// Of three plays the one in the middle; none when one did not end well.
std::optional<InChild> middle_of_three(const std::function<std::optional<InChild>()>& play) {
  std::array<InChild, 3> plays;
  for (InChild& p : plays) {
    const auto played = play();
    if (!played) return std::nullopt;
    p = *played;
  }
  std::sort(plays.begin(), plays.end(),
            [](const InChild& a, const InChild& b) { return a.said < b.said; });
  return plays[1];
}

std::optional<InChild> seconds_alone(const BenchJob& job) {
  return middle_of_three(
      [&] { return in_child([&] { return play_alone(job).played_wall_seconds; }); });
}

std::optional<InChild> seconds_as_two(const BenchJob& job) {
  return middle_of_three([&]() -> std::optional<InChild> {
    const auto result = play_as_two(job);
    if (!result) return std::nullopt;
    return InChild{result->played_wall_seconds, 0};
  });
}

// Rings of ten with 4 KiB chunks, about a million messages in all.
void Ranks(benchmark::State& state, FabricKind kind) {
  const auto ranks = static_cast<int>(state.range(0));
  const int calls = std::max(1, 1'000'000 / (ranks * 18));
  const BenchJob job =
      collective_job(kind, ranks, 10, collective(Func::all_reduce, 10 * 1024), calls);
  const double messages = 18.0 * calls * ranks;
  const std::string curve = kind == FabricKind::memory ? "memory" : "virtual time";
  for (auto _ : state) {
    const auto played = seconds_alone(job);
    if (!played) return state.SkipWithError("the run did not end well");
    state.SetIterationTime(played->said);
    note(state, "ranks_ns_per_message", curve, ranks, played->said * 1e9 / messages);
    note(state, "ranks_resident_MiB", curve, ranks, played->most_resident_kib / 1024);
  }
}

// 200,000, or of about 1 GiB where that is less and payload is touched.
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
    note(state, "size_us_per_message", payload == PayloadMode::copied ? "copied" : "untouched",
         static_cast<double>(bytes), played->said * 1e6 / static_cast<double>(messages));
  }
}

void SizeOverLibfabric(benchmark::State& state) {
  const auto bytes = static_cast<std::uint64_t>(state.range(0));
  const BenchJob job = stream_job(2, messages_of(bytes), bytes);
  for (auto _ : state) {
    const auto played = seconds_as_two(job);
    if (!played) return state.SkipWithError("the run did not end well");
    state.SetIterationTime(played->said);
    note(state, "size_us_per_message", "libfabric", static_cast<double>(bytes),
         played->said * 1e6 / static_cast<double>(messages_of(bytes)));
  }
}

// 20,000 messages of 16 KiB by so many flows, a pair of emulated NICs and 5-tuple each, or by one.
void Flows(benchmark::State& state, FlowKind kind) {
  const auto pairs = static_cast<int>(state.range(0));
  const std::uint64_t each = 20'000 / static_cast<std::uint64_t>(pairs);
  BenchJob job = stream_job(2 * pairs, each, 16 << 10);
  job.job.spec.fabric.flows = kind;
  const double messages = static_cast<double>(each) * pairs;
  for (auto _ : state) {
    const auto played = seconds_as_two(job);
    if (!played) return state.SkipWithError("the run did not end well");
    state.SetIterationTime(played->said);
    note(state, "flows_us_per_message", kind == FlowKind::nic ? "flow a pair" : "one flow", pairs,
         played->said * 1e6 / messages);
  }
}

void once(benchmark::internal::Benchmark* b) {
  b->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(Ranks, memory, FabricKind::memory)
    ->RangeMultiplier(10)
    ->Range(10, 100'000)
    ->Apply(once);
BENCHMARK_CAPTURE(Ranks, virtual_time, FabricKind::virtual_time)
    ->RangeMultiplier(10)
    ->Range(10, 100'000)
    ->Apply(once);
BENCHMARK_CAPTURE(Size, untouched, PayloadMode::untouched)
    ->RangeMultiplier(8)
    ->Range(64, 16 << 20)
    ->Apply(once);
BENCHMARK_CAPTURE(Size, copied, PayloadMode::copied)
    ->RangeMultiplier(8)
    ->Range(64, 16 << 20)
    ->Apply(once);
BENCHMARK(SizeOverLibfabric)->RangeMultiplier(8)->Range(64, 16 << 20)->Apply(once);
BENCHMARK_CAPTURE(Flows, own, FlowKind::nic)->RangeMultiplier(4)->Range(1, 256)->Apply(once);
BENCHMARK_CAPTURE(Flows, shared, FlowKind::process)->RangeMultiplier(4)->Range(1, 256)->Apply(once);

struct Picture {
  const char *values, *file, *title, *across, *up;
};
constexpr Picture kPictures[] = {
    {"ranks_ns_per_message", "growth-ranks.svg", "Cost of a message by ranks in one process",
     "ranks", "ns"},
    {"ranks_resident_MiB", "growth-memory.svg", "Resident memory by ranks in one process", "ranks",
     "MiB"},
    {"size_us_per_message", "growth-size.svg", "Cost of a message by its size", "bytes",
     "microseconds"},
    {"flows_us_per_message", "growth-flows.svg", "Cost of a message of 16 KiB by pairs of ranks",
     "pairs", "microseconds"},
};

void draw() {
  const std::filesystem::path folder =
      std::getenv("GHOSTRANK_UPDATE") ? GHOSTRANK_PICTURES : "build/bench";
  std::filesystem::create_directories(folder);
  for (const Picture& p : kPictures) {
    SvgCurves curves{p.title, p.across, p.up, {}, SvgScale::by_tens};
    for (const auto& [name, points] : found[p.values]) curves.lines.push_back({name, points});
    if (!curves.lines.empty()) std::ofstream(folder / p.file) << svg_curves(curves);
  }
}

}  // namespace
}  // namespace ghostrank::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  ghostrank::bench::draw();
}
