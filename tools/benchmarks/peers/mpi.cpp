// An all-reduce against Open MPI's on this machine: one MPI process per rank over Open MPI's shared
// memory, against ranks of one ghostrank process on the memory fabric. With `verify` ghostrank adds
// and compares every element, as an application would get it. Without, it sends the same messages
// and bytes but does not touch payload. Resident memory is the sum of the processes' peaks.
#include <cstdio>
#include <cstdlib>
#include <string>

#include <benchmark/benchmark.h>

#include "tools/benchmarks/found.h"
#include "tools/benchmarks/jobs.h"

namespace ghostrank::bench {
namespace {

// Many calls per play, because a play begins and ends with all ranks meeting, which is not part of
// a call.
int calls_of(std::uint64_t bytes) { return bytes < 16 << 20 ? 20 : 4; }
constexpr std::uint64_t kSliceBytes = 256 << 10;  // stays in a core's cache from sender to sum

void count(benchmark::State& state, double seconds, double resident_kib) {
  state.SetIterationTime(seconds);
  state.counters["seconds"] = seconds;
  state.counters["bytes"] = static_cast<double>(state.range(1));
  state.counters["ranks"] = static_cast<double>(state.range(0));
  state.counters["resident_MiB"] = resident_kib / 1024;
}

void OpenMpiAllReduce(benchmark::State& state) {
  const int calls = calls_of(static_cast<std::uint64_t>(state.range(1)));
  const std::string command =
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rtc=^hwloc "
      "OMPI_MCA_mpi_yield_when_idle=1 mpirun --oversubscribe --bind-to none -n " +
      std::to_string(state.range(0)) + " " GHOSTRANK_MPI_ALL_REDUCE " " +
      std::to_string(state.range(1)) + " " + std::to_string(calls) + " 2>/dev/null";
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

// Sets the time per call, in seconds.
void play_in_child(benchmark::State& state, bool verify, int threads) {
  const auto ranks = static_cast<int>(state.range(0));
  const auto bytes = static_cast<std::uint64_t>(state.range(1));
  const int calls = calls_of(bytes);
  BenchJob job = collective_job(FabricKind::memory, ranks, ranks,
                                collective(Func::all_reduce, bytes / 4), calls);
  job.job.spec.run.verify = verify;
  job.job.spec.run.shards = threads;
  job.job.spec.collectives.slice_bytes = kSliceBytes;
  for (auto _ : state) {
    const auto child = in_child([&] { return play_alone(job).played_wall_seconds / calls; });
    if (!child) return state.SkipWithError("the run did not end well");
    count(state, child->said, child->most_resident_kib);
  }
}

void GhostrankAllReduce(benchmark::State& state) {
  play_in_child(state, false, 1);
  state.counters["payload_touched"] = 0;
}
void GhostrankAllReduceByTwoThreads(benchmark::State& state) {
  play_in_child(state, false, 2);
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

void three(benchmark::internal::Benchmark* b) {
  b->UseManualTime()->Iterations(1)->Repetitions(3)->Unit(benchmark::kMillisecond);
}
void large(benchmark::internal::Benchmark* b) {
  b->Args({2, 64 << 20})->Args({8, 64 << 20})->Apply(three);
}
BENCHMARK(OpenMpiAllReduce)->Apply(large);
BENCHMARK(GhostrankAllReduce)->Apply(large);
BENCHMARK(GhostrankAllReduceVerified)->Apply(large);
BENCHMARK(GhostrankAllReduceVerifiedByTwoThreads)->Apply(large);
BENCHMARK(OpenMpiAllReduce)->Args({64, 1 << 20})->Args({256, 1 << 20})->Apply(three);
BENCHMARK(GhostrankAllReduce)->Args({64, 1 << 20})->Args({256, 1 << 20})->Apply(three);
BENCHMARK(GhostrankAllReduceByTwoThreads)->Args({64, 1 << 20})->Args({256, 1 << 20})->Apply(three);
BENCHMARK(GhostrankAllReduceVerified)->Args({256, 1 << 20})->Apply(three);
BENCHMARK(GhostrankAllReduceVerifiedByTwoThreads)->Args({256, 1 << 20})->Apply(three);

report::Row beside(const Found& found, const std::string& what, const std::string& args) {
  const auto open_mpi = found.median("OpenMpiAllReduce/" + args, "seconds");
  const auto resident = [&](const std::string& name) {
    return figure(found.median(name + args, "resident_MiB")) + " MiB";
  };
  const auto cell = [&](const std::string& name) {
    const auto took = found.median(name + args, "seconds");
    if (!took) return figure(took);
    return figure(took, *took < 0.01 ? 2 : 0, 1e-3) + " ms" +
           (open_mpi ? ", " + ratio(open_mpi, took) : "");
  };
  return {what,
          figure(open_mpi, 0, 1e-3) + " ms",
          cell("GhostrankAllReduce/"),
          cell("GhostrankAllReduceByTwoThreads/"),
          cell("GhostrankAllReduceVerified/"),
          cell("GhostrankAllReduceVerifiedByTwoThreads/"),
          resident("OpenMpiAllReduce/"),
          resident("GhostrankAllReduce/")};
}

}  // namespace

Section section(const Found& found) {
  return {"All-reduce of floats, ghostrank's in slices of 256 KiB, " +
              std::to_string(calls_of(64 << 20)) + " calls of 64 MiB or " +
              std::to_string(calls_of(1 << 20)) +
              " of 1 MiB a play, medians of 3 plays: time of a call, and how many times as fast as "
              "Open MPI that is; aims are 3 untouched and 1 verified, with 256 ranks 20 and a "
              "hundredth of its memory. Open MPI has both cores.\n\n" +
              report::markdown_table(
                  {{"", "Open MPI", "untouched", "untouched, two threads", "verified",
                    "verified, two threads", "resident: Open MPI", "untouched"},
                   beside(found, "2 ranks, 64 MiB", "2/67108864"),
                   beside(found, "8 ranks, 64 MiB", "8/67108864"),
                   beside(found, "64 ranks, 1 MiB", "64/1048576"),
                   beside(found, "256 ranks, 1 MiB", "256/1048576")}),
          {}};
}

}  // namespace ghostrank::bench
