// How cost grows with ranks (10 to 100,000 in one process), with whole jobs (1,024 to 131,072
// ranks), with message size, and with flows between two processes. Pictures of medians, and a table
// of the jobs; those that take minutes are played only where GHOSTRANK_BENCH_LONG is set.
#include <cstdlib>
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

// Llama-3 405B as flows, with ever more replicas: the fabric of profiles/jobs/llama3-405b.yaml gets
// more pods, and the batch grows with the replicas.
void Job(benchmark::State& state) {
  const auto ranks = static_cast<int>(state.range(0));
  const int pods = std::max(8, ranks / 2048);
  const std::vector<std::string> overrides{
      "run.shards=1", "cluster.nodes=" + std::to_string(ranks / 8),
      "parallel.global_batch=" + std::to_string(ranks / 8),
      "cluster.topology={kind: fat_tree, places: " + std::to_string(384 * pods) +
          ", pods: " + std::to_string(pods) + ", leaves: " + std::to_string(192 * pods) +
          ", pod_oversubscription: 7}"};
  for (auto _ : state) {
    const auto child = in_child([&] { return play_step("llama3-405b", overrides); });
    if (!child || child->said == 0) return state.SkipWithError("the run did not end well");
    state.SetIterationTime(child->cpu_seconds);
    state.counters["seconds"] = child->cpu_seconds;
    state.counters["messages"] = child->said;
    state.counters["MiB"] = child->most_resident_kib / 1024;
    state.counters["ms_per_rank"] = child->cpu_seconds * 1e3 / ranks;
    state.counters["KiB_per_rank"] = child->most_resident_kib / ranks;
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

constexpr int kFewest = 1024, kMost = 16384, kMostOfAll = 131072;
const bool kJobsRegistered = [] {
  const bool all = std::getenv("GHOSTRANK_BENCH_LONG") != nullptr;
  for (int ranks = kFewest; ranks <= (all ? kMostOfAll : kMost); ranks *= 2)
    benchmark::RegisterBenchmark("Job", Job)
        ->Arg(ranks)
        ->UseManualTime()
        ->Iterations(1)
        ->Repetitions(ranks <= kMost ? 3 : 1)
        ->Unit(benchmark::kMillisecond);
  return true;
}();

struct Curve {
  const char *benchmark, *counter, *name;
};
struct Picture {
  const char *file, *title, *across, *up;
  std::vector<Curve> curves;
};
const Picture kPictures[] = {
    {"growth-ranks.svg",
     "Cost of a message by ranks in one process",
     "ranks",
     "ns",
     {{"Ranks/memory", "ns_per_message", "memory"},
      {"Ranks/virtual_time", "ns_per_message", "virtual time"}}},
    {"growth-memory.svg",
     "Resident memory by ranks in one process",
     "ranks",
     "MiB",
     {{"Ranks/memory", "resident_MiB", "memory"},
      {"Ranks/virtual_time", "resident_MiB", "virtual time"}}},
    {"growth-jobs.svg",
     "A step of Llama-3 405B as flows, by ranks: cost of each rank",
     "ranks",
     "of each rank",
     {{"Job", "ms_per_rank", "ms of processor time"}, {"Job", "KiB_per_rank", "KiB of memory"}}},
    {"growth-size.svg",
     "Cost of a message by its size",
     "bytes",
     "microseconds",
     {{"Size/copied", "us_per_message", "copied"},
      {"SizeOverLibfabric", "us_per_message", "libfabric"},
      {"Size/untouched", "us_per_message", "untouched"}}},
    {"growth-flows.svg",
     "Cost of a message of 16 KiB by pairs of ranks",
     "pairs",
     "microseconds",
     {{"Flows/own", "us_per_message", "flow a pair"},
      {"Flows/shared", "us_per_message", "one flow"}}},
};

// The jobs that were played: their cost, that of a rank, and this relative to the smallest job's.
std::string table_of_jobs(const Found& found) {
  std::vector<report::Row> rows{{"ranks", "messages", "processor time", "a rank",
                                 "times the smallest's", "memory", "a rank",
                                 "times the smallest's"}};
  const std::string least = "Job/" + std::to_string(kFewest);
  for (int ranks = kFewest; ranks <= kMostOfAll; ranks *= 2) {
    const std::string name = "Job/" + std::to_string(ranks);
    const auto of = [&](const char* counter) { return found.median(name, counter); };
    if (!of("seconds")) continue;
    rows.push_back({std::to_string(ranks), figure(of("messages"), 1, 1e6) + " M",
                    figure(of("seconds"), 2) + " s", figure(of("ms_per_rank"), 2) + " ms",
                    ratio(of("ms_per_rank"), found.median(least, "ms_per_rank")),
                    figure(of("MiB")) + " MiB", figure(of("KiB_per_rank"), 1) + " KiB",
                    ratio(of("KiB_per_rank"), found.median(least, "KiB_per_rank"))});
  }
  return report::markdown_table(rows);
}

}  // namespace

Section section(const Found& found) {
  Section said;
  for (const Picture& p : kPictures) {
    SvgCurves curves{p.title, p.across, p.up, {}, SvgScale::by_tens};
    bool measured = false;
    for (const Curve& curve : p.curves) {
      SvgLine line{curve.name, {}};
      for (const auto& [x, y] : found.curve(curve.benchmark, curve.counter))
        line.points.push_back({x, y});
      measured |= !line.points.empty();
      curves.lines.push_back(line);
    }
    if (measured) said.pictures[p.file] = svg_curves(curves);  // else the old one stays
  }
  said.markdown =
      "One step of Llama-3 405B as flows in virtual time, planning included, one thread: 128 ranks "
      "a replica, 16 samples each, on a fabric with pods of 3,072 ranks, 1:7 between pods; medians "
      "of 3 plays, above " +
      std::to_string(kMost) + " ranks of one; aim: a rank costs at most 1.15 times as much.\n\n" +
      table_of_jobs(found);
  return said;
}

}  // namespace ghostrank::bench
