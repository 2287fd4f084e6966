// What the engine itself costs: messages per second on memory and in virtual time, memory per rank.
// Counters say messages and bytes of the measured part and whether payload was touched.
#include <cstdlib>

#include <benchmark/benchmark.h>

#include "emulator/host_facts.h"
#include "tools/bench/jobs.h"

namespace ghostrank::bench {
namespace {

void count(benchmark::State& state, const Result& result, bool touched) {
  const double messages = result.messages_per_iteration + result.intra_node_messages_per_iteration;
  const double bytes = result.wire_bytes_per_iteration + result.intra_node_bytes_per_iteration;
  state.counters["messages"] = messages;
  state.counters["bytes"] = bytes;
  state.counters["payload_touched"] = touched ? 1 : 0;
  state.counters["messages_per_second"] = messages / result.played_wall_seconds;
}

void run_rings(benchmark::State& state, FabricKind kind, int ranks, PayloadMode payload) {
  // Rings of 16 with 4 KiB chunks: an all-reduce of 64 KiB is 30 messages per rank.
  const int calls = std::max(1, 2'000'000 / (ranks * 30));
  BenchJob job = collective_job(kind, ranks, std::min(ranks, 16),
                                collective(Func::all_reduce, 16 * 1024), calls);
  job.job.spec.fabric.payload = payload;
  for (auto _ : state) {
    const Result result = play_alone(job);
    state.SetIterationTime(result.played_wall_seconds);
    count(state, result, payload == PayloadMode::copied);
  }
}

void MemoryRingsUntouched(benchmark::State& state) {
  run_rings(state, FabricKind::memory, static_cast<int>(state.range(0)), PayloadMode::untouched);
}
void MemoryRingsCopied(benchmark::State& state) {
  run_rings(state, FabricKind::memory, static_cast<int>(state.range(0)), PayloadMode::copied);
}
void VirtualRings(benchmark::State& state) {
  run_rings(state, FabricKind::virtual_time, static_cast<int>(state.range(0)),
            PayloadMode::untouched);
}

// One long ring over everything, with 400 Gb/s NICs and 2 us: every message is an event at a time
// of its own.
void VirtualLongRing(benchmark::State& state) {
  const auto ranks = static_cast<int>(state.range(0));
  BenchJob job =
      collective_job(FabricKind::virtual_time, ranks, ranks,
                     collective(Func::all_reduce, static_cast<std::uint64_t>(ranks) * 4096), 1);
  job.job.spec.cluster.nic = NicSpec{};
  job.job.spec.run.jitter = 0.1;
  Op compute;
  compute.duration = 100 * kPicosPerMicro;
  auto& ops = job.workload.roles[0].iterations[0].streams[0];
  ops.insert(ops.begin(), compute);
  for (auto _ : state) {
    const Result result = play_alone(job);
    state.SetIterationTime(result.played_wall_seconds);
    count(state, result, false);
  }
}

// Resident memory of ranks that have played one collective and wait in the next compute delay.
void MemoryOfARankAtRest(benchmark::State& state) {
  const auto ranks = static_cast<int>(state.range(0));
  for (auto _ : state) {
    const std::uint64_t before = resident_bytes();
    BenchJob job = collective_job(FabricKind::virtual_time, ranks, 16,
                                  collective(Func::all_reduce, 16 * 1024), 1);
    struct AtRest : Observer {
      std::uint64_t bytes = 0;
      void on_progress(double, double) override { bytes = std::max(bytes, resident_bytes()); }
    } observer;
    const auto control = Control::meet(World{});
    const Result result = run_job(job.job, job.workload, *control, {}, observer);
    state.SetIterationTime(result.played_wall_seconds);
    count(state, result, false);
    state.counters["bytes_per_rank"] =
        static_cast<double>(observer.bytes - std::min(observer.bytes, before)) / ranks;
  }
}

BENCHMARK(MemoryRingsUntouched)
    ->Arg(16)
    ->Arg(1000)
    ->Arg(10'000)
    ->UseManualTime()
    ->Iterations(3)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(MemoryRingsCopied)
    ->Arg(16)
    ->Arg(1000)
    ->Arg(10'000)
    ->UseManualTime()
    ->Iterations(3)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(VirtualRings)
    ->Arg(16)
    ->Arg(1000)
    ->Arg(10'000)
    ->UseManualTime()
    ->Iterations(3)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(VirtualLongRing)
    ->Arg(64)
    ->Arg(1024)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(MemoryOfARankAtRest)
    ->Arg(100'000)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ghostrank::bench

BENCHMARK_MAIN();
