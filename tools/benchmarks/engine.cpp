// Cost of the engine itself: messages per second on the memory fabric and in virtual time, and
// memory per rank. Counters give messages and bytes of the measured part, and whether payload was
// touched.
#include <cstdlib>

#include <benchmark/benchmark.h>

#include "emulator/host/host_facts.h"
#include "tools/benchmarks/found.h"
#include "tools/benchmarks/jobs.h"

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
  // Rings of 16 with 4 KiB pieces: an all-reduce of 64 KiB takes 30 messages per rank.
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

// One long ring over all ranks, with 400 Gb/s NICs and 2 us latency, so that every message is an
// event at a different time.
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
  OpList with{compute};
  for (const Op& op : ops) with.push_back(op);
  ops = std::move(with);
  for (auto _ : state) {
    const Result result = play_alone(job);
    state.SetIterationTime(result.played_wall_seconds);
    count(state, result, false);
  }
}

// Ranks that play one collective and then rest in a compute delay of 1 s.
BenchJob job_with_a_rest(int ranks) {
  BenchJob job =
      collective_job(FabricKind::memory, ranks, 16, collective(Func::all_reduce, 16 * 1024), 1);
  Op rest;
  rest.duration = kPicosPerSecond;
  job.workload.roles[0].iterations[0].streams[0].push_back(rest);
  return job;
}

// Resident bytes of the process, as last seen while all ranks of the warm-up rest.
double resident_at_rest(const BenchJob& job) {
  struct AtRest : Observer {
    std::uint64_t bytes = 0;
    bool rests = true;
    void on_progress(double, double) override {
      if (rests) bytes = resident_bytes();
    }
    void on_iteration(int, const IterationReport&) override { rests = false; }
  } observer;
  const auto control = Control::meet(World{});
  run_job(job.job, job.workload, *control, {}, observer);
  return static_cast<double>(observer.bytes);
}

// Resident bytes per rank: a process with all ranks, less a process with 16.
void MemoryOfARankAtRest(benchmark::State& state) {
  const auto ranks = static_cast<int>(state.range(0));
  for (auto _ : state) {
    const auto few = in_child([] { return resident_at_rest(job_with_a_rest(16)); });
    const auto all = in_child([&] { return resident_at_rest(job_with_a_rest(ranks)); });
    if (!few || !all) return state.SkipWithError("the run did not end well");
    state.counters["payload_touched"] = 0;
    state.counters["resident_MiB"] = all->said / (1 << 20);
    state.counters["bytes_per_rank"] = (all->said - few->said) / ranks;
  }
}

void nine(benchmark::internal::Benchmark* b) {
  b->UseManualTime()->Iterations(1)->Repetitions(9)->Unit(benchmark::kMillisecond);
}
BENCHMARK(MemoryRingsUntouched)->Arg(16)->Arg(1000)->Arg(10'000)->Apply(nine);
BENCHMARK(MemoryRingsCopied)->Arg(16)->Arg(1000)->Arg(10'000)->Apply(nine);
BENCHMARK(VirtualRings)->Arg(16)->Arg(1000)->Arg(10'000)->Apply(nine);
BENCHMARK(VirtualLongRing)->Arg(64)->Arg(1024)->Apply(nine);
BENCHMARK(MemoryOfARankAtRest)
    ->Arg(10'000)
    ->Arg(100'000)
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

std::string median_and_best(const Found& found, const std::string& name) {
  return figure(found.median(name, "messages_per_second"), 1, 1e6) + " (" +
         figure(found.most(name, "messages_per_second"), 1, 1e6) + ")";
}

report::Row rings(const Found& found, const std::string& what, const std::string& name,
                  const std::string& aim) {
  report::Row row{what};
  for (const char* ranks : {"/16", "/1000", "/10000"})
    row.push_back(median_and_best(found, name + ranks));
  row.push_back(aim);
  return row;
}

}  // namespace

Section section(const Found& found) {
  const auto rest = [&](const std::string& ranks) {
    return figure(found.median("MemoryOfARankAtRest/" + ranks, "bytes_per_rank"));
  };
  return {
      "Rings of 16 ranks with 4 KiB chunks, one thread, links without latency or rate; 1.8 to "
      "2 M messages, 7.4 to 8.2 GB a play; millions of messages a second, medians of 9 "
      "plays (and the best).\n\n" +
          report::markdown_table(
              {{"", "16 ranks", "1,000", "10,000", "aim, 10,000"},
               rings(found, "memory, payload untouched", "MemoryRingsUntouched", "20"),
               rings(found, "memory, payload copied", "MemoryRingsCopied", "5"),
               rings(found, "virtual time, untouched", "VirtualRings", "")}) +
          "\n" +
          report::markdown_table(
              {{"", "", "aim"},
               {"one ring in virtual time, 400 Gb/s, 2 µs, jitter; 64 ranks, 1,024",
                median_and_best(found, "VirtualLongRing/64") + ", " +
                    median_and_best(found, "VirtualLongRing/1024") + " M messages/s",
                ""},
               {"a rank at rest, 10,000 in one process", rest("10000") + " B", "1,024 B"},
               {"a rank at rest, 100,000", rest("100000") + " B", ""}}),
      {}};
}

}  // namespace ghostrank::bench
