// An all-reduce beside Open MPI's, on this machine: as many MPI processes as ranks, over its shared
// memory, against ranks of one ghostrank process on the memory fabric. With `verify` ghostrank adds
// and compares every element, as an application would get it; without, payload is not touched:
// messages and bytes are the same, their content is not there. Resident memory is the most that the
// processes ever had, together.
#include <cstdio>
#include <cstdlib>
#include <string>

#include <benchmark/benchmark.h>

#include "tools/bench/jobs.h"

namespace ghostrank::bench {
namespace {

constexpr int kCalls = 4;

void count(benchmark::State& state, double seconds, double resident_kib) {
  state.SetIterationTime(seconds);
  state.counters["bytes"] = static_cast<double>(state.range(1));
  state.counters["ranks"] = static_cast<double>(state.range(0));
  state.counters["resident_MiB"] = resident_kib / 1024;
}

void OpenMpiAllReduce(benchmark::State& state) {
  const std::string command =
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rtc=^hwloc "
      "OMPI_MCA_mpi_yield_when_idle=1 mpirun --oversubscribe --bind-to none -n " +
      std::to_string(state.range(0)) + " " GHOSTRANK_MPI_ALL_REDUCE " " +
      std::to_string(state.range(1)) + " " + std::to_string(kCalls) + " 2>/dev/null";
  for (auto _ : state) {
    double seconds = 0;
    long resident = 0;
    std::FILE* said = popen(command.c_str(), "r");
    const bool read = said && std::fscanf(said, "%lf %ld", &seconds, &resident) == 2;
    if (!said || pclose(said) != 0 || !read)
      return state.SkipWithError("mpirun did not end well: is openmpi-bin here?");
    count(state, seconds, static_cast<double>(resident));
  }
}

// Seconds per call.
void play_in_child(benchmark::State& state, bool verify, int threads) {
  const auto ranks = static_cast<int>(state.range(0));
  BenchJob job = collective_job(
      FabricKind::memory, ranks, ranks,
      collective(Func::all_reduce, static_cast<std::uint64_t>(state.range(1)) / 4), kCalls);
  job.job.spec.run.verify = verify;
  job.job.spec.run.shards = threads;
  for (auto _ : state) {
    const auto child = in_child([&] { return play_alone(job).played_wall_seconds / kCalls; });
    if (!child) return state.SkipWithError("the run did not end well");
    count(state, child->said, child->most_resident_kib);
  }
}

void GhostrankAllReduce(benchmark::State& state) {
  play_in_child(state, false, 1);
  state.counters["payload_touched"] = 0;
}
void GhostrankAllReduceVerified(benchmark::State& state) {
  play_in_child(state, true, 1);
  state.counters["payload_touched"] = 1;
}
void GhostrankAllReduceVerifiedByTwoThreads(benchmark::State& state) {
  play_in_child(state, true, 2);
  state.counters["payload_touched"] = 1;
}

// In turns, so that one line stands beside what it is to be compared with.
void sizes(benchmark::internal::Benchmark* b) {
  b->UseManualTime()->Iterations(1)->Repetitions(3)->Unit(benchmark::kMillisecond);
}
BENCHMARK(OpenMpiAllReduce)->Args({2, 64 << 20})->Apply(sizes);
BENCHMARK(GhostrankAllReduce)->Args({2, 64 << 20})->Apply(sizes);
BENCHMARK(GhostrankAllReduceVerified)->Args({2, 64 << 20})->Apply(sizes);
BENCHMARK(GhostrankAllReduceVerifiedByTwoThreads)->Args({2, 64 << 20})->Apply(sizes);
BENCHMARK(OpenMpiAllReduce)->Args({8, 64 << 20})->Apply(sizes);
BENCHMARK(GhostrankAllReduce)->Args({8, 64 << 20})->Apply(sizes);
BENCHMARK(GhostrankAllReduceVerified)->Args({8, 64 << 20})->Apply(sizes);
BENCHMARK(GhostrankAllReduceVerifiedByTwoThreads)->Args({8, 64 << 20})->Apply(sizes);
// More processes of Open MPI 4.1.4 than this end by faults on two cores.
BENCHMARK(OpenMpiAllReduce)->Args({64, 1 << 20})->Apply(sizes);
BENCHMARK(GhostrankAllReduce)->Args({64, 1 << 20})->Apply(sizes);
BENCHMARK(GhostrankAllReduce)->Args({256, 1 << 20})->Apply(sizes);
BENCHMARK(GhostrankAllReduceVerified)->Args({256, 1 << 20})->Apply(sizes);
BENCHMARK(GhostrankAllReduceVerifiedByTwoThreads)->Args({256, 1 << 20})->Apply(sizes);

}  // namespace
}  // namespace ghostrank::bench

BENCHMARK_MAIN();
