// Accuracy of time: the lateness of compute delays, and the rate of paced sends against the rate
// asked for. Assumes an idle machine. Bounds: 99th percentile of the lateness 100 us plus 0.2 us
// per rank; rate 1 %.
#include <benchmark/benchmark.h>

#include "tools/benchmarks/found.h"
#include "tools/benchmarks/two_processes.h"

namespace ghostrank::bench {
namespace {

// Every rank computes 20 times for 2 ms, plus 1 ms per 1,000 ranks, with a jitter of 0.2. No
// messages but those of a barrier at the end.
void LatenessOfComputeDelays(benchmark::State& state) {
  const auto ranks = static_cast<int>(state.range(0));
  BenchJob job = collective_job(FabricKind::memory, ranks, ranks, collective(Func::barrier, 0), 1);
  job.job.spec.run.jitter = 0.2;
  Op compute;
  compute.duration = (2 + ranks / 1000) * kPicosPerMilli;
  OpList& ops = job.workload.roles[0].iterations[0].streams[0];
  const Op barrier = ops.front();
  ops = OpList(20, compute);
  ops.push_back(barrier);
  for (auto _ : state) {
    const Result result = play_alone(job);
    state.SetIterationTime(result.played_wall_seconds);
    state.counters["late_us_p50"] = result.fidelity.lateness_us_p50;
    state.counters["late_us_p99"] = result.fidelity.lateness_us_p99;
    state.counters["p99_at_most"] = 100 + 0.2 * ranks;
  }
}

// A stream of 64 KiB messages between two processes over a NIC of so many Gb/s: the time it takes
// against its bytes at that rate.
void PacedRate(benchmark::State& state) {
  constexpr std::uint64_t kBytes = 1 << 16;
  const auto gbps = static_cast<double>(state.range(0));
  const auto each = static_cast<std::uint64_t>(gbps * 1e9 / 8 / kBytes);  // messages of one second
  BenchJob job = stream_job(2, each, kBytes);
  job.job.spec.cluster.nic.rate_bps = gbps * 1e9;
  for (auto _ : state) {
    const auto result = play_as_two(job);
    if (!result) return state.SkipWithError("the run did not end well");
    const double asked = static_cast<double>(each * kBytes) * 8 / (gbps * 1e9),
                 took = result->iterations.front().seconds;
    state.SetIterationTime(took);
    state.counters["rate_off_percent"] = 100 * (asked / took - 1);
    state.counters["rate_error_percent"] = 100 * result->fidelity.rate_error;
  }
}

void three(benchmark::internal::Benchmark* b) {
  b->UseManualTime()->Iterations(1)->Repetitions(3)->Unit(benchmark::kMillisecond);
}
BENCHMARK(LatenessOfComputeDelays)->Arg(10)->Arg(1000)->Arg(10'000)->Apply(three);
BENCHMARK(PacedRate)->Arg(1)->Arg(10)->Apply(three);

report::Row lateness(const Found& found, const std::string& what, const std::string& ranks) {
  const std::string name = "LatenessOfComputeDelays/" + ranks;
  return {what, figure(found.median(name, "late_us_p50"), 1) + " µs",
          figure(found.median(name, "late_us_p99"), 1) + " µs",
          "20 µs, " + figure(found.median(name, "p99_at_most")) + " µs"};
}

report::Row rate(const Found& found, const std::string& gbps) {
  const std::string name = "PacedRate/" + gbps;
  return {"to " + gbps + " Gb/s", figure(found.median(name, "rate_off_percent"), 2) + " %",
          figure(found.median(name, "rate_error_percent"), 2) + " %", "1 %"};
}

}  // namespace

Section section(const Found& found) {
  return {"Medians of 3 plays.\n\n" +
              report::markdown_table({{"compute delays fired late", "p50", "p99", "aim"},
                                      lateness(found, "10 ranks in one process", "10"),
                                      lateness(found, "1,000 ranks", "1000"),
                                      lateness(found, "10,000 ranks", "10000")}) +
              "\n" +
              report::markdown_table({{"64 KiB messages between two processes, paced for a second",
                                       "whole stream off", "rate within busy periods off", "aim"},
                                      rate(found, "1"),
                                      rate(found, "10")}),
          {}};
}

}  // namespace ghostrank::bench
