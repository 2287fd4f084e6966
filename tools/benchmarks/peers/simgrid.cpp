// The modelled networks beside SimGrid: `flow` with the transfers of simgrid_transfers.cpp, `loggp`
// with the ring of simgrid_ring.cpp.
#include "tools/benchmarks/peers/simgrid.h"

#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "tools/benchmarks/found.h"
#include "tools/benchmarks/jobs.h"

namespace ghostrank::bench {
namespace {

constexpr int kHosts[]{64, 256, 1024};
constexpr int kRing = 1024, kAnsweringRing = 128;

// Processor seconds of what a child process measures.
void Plays(benchmark::State& state, double (*seconds)(int)) {
  const auto hosts = static_cast<int>(state.range(0));
  for (auto _ : state) {
    const auto child = in_child([&] { return seconds(hosts); });
    if (!child) return state.SkipWithError("the run did not end well");
    state.SetIterationTime(child->said);
    state.counters["seconds"] = child->said;
    state.counters["MiB"] = child->most_resident_kib / 1024;
  }
}
void Answers(benchmark::State& state) {
  const auto hosts = static_cast<int>(state.range(0));
  for (auto _ : state) {
    const auto worst = in_child([&] { return transfers_apart(hosts).worst; });
    const auto mean = in_child([&] { return transfers_apart(hosts).mean; });
    if (!worst || !mean) return state.SkipWithError("the run did not end well");
    state.counters["worst"] = worst->said;
    state.counters["mean"] = mean->said;
  }
}
// How far the durations of smaller rings are from those of `loggp`.
void RingAnswers(benchmark::State& state, Played (*play)(int)) {
  for (auto _ : state) {
    const auto apart = ring_apart(kAnsweringRing, play);
    if (!apart) return state.SkipWithError("the run did not end well");
    state.counters["apart"] = *apart;
  }
}
void sizes(benchmark::internal::Benchmark* b) {
  for (const int hosts : kHosts) b->Arg(hosts);
  b->UseManualTime()->Iterations(1)->Repetitions(3)->Unit(benchmark::kMillisecond);
}
template <Played (*play)(int, int)>
double playing(int hosts) {
  return play(hosts, 2).cpu_seconds;
}
template <Played (*play)(int, int)>
double whole(int hosts) {
  return play(hosts, 1).whole_cpu_seconds;
}
template <Played (*play)(int)>
double ring_of(int ranks) {
  return play(ranks).cpu_seconds;
}
BENCHMARK_CAPTURE(Plays, flow, playing<play_transfers_as_flows>)->Apply(sizes);
BENCHMARK_CAPTURE(Plays, simgrid, playing<play_transfers_in_simgrid>)->Apply(sizes);
BENCHMARK_CAPTURE(Plays, whole_flow, whole<play_transfers_as_flows>)->Apply(sizes);
BENCHMARK_CAPTURE(Plays, whole_simgrid, whole<play_transfers_in_simgrid>)->Apply(sizes);
void ring(benchmark::internal::Benchmark* b) {
  b->Arg(kRing)->UseManualTime()->Iterations(1)->Repetitions(3)->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(Plays, ring_loggp, ring_of<play_ring_by_loggp>)->Apply(ring);
BENCHMARK_CAPTURE(Plays, ring_actors, ring_of<play_ring_by_actors>)->Apply(ring);
BENCHMARK_CAPTURE(Plays, ring_smpi, ring_of<play_ring_by_smpi>)->Apply(ring);
BENCHMARK_CAPTURE(RingAnswers, actors, play_ring_by_actors)->Iterations(1);
BENCHMARK_CAPTURE(RingAnswers, smpi, play_ring_by_smpi)->Iterations(1);
BENCHMARK(Answers)->Arg(kHosts[0])->Arg(kHosts[1])->Arg(kHosts[2])->Iterations(1)->Unit(
    benchmark::kMillisecond);

}  // namespace

Section section(const Found& found) {
  std::vector<report::Row> rows{{"hosts", "transfers", "playing: `flow`", "SimGrid",
                                 "times as fast", "whole: `flow`", "SimGrid", "times as fast",
                                 "durations apart, mean", "worst"}};
  for (const int hosts : kHosts) {
    const std::string at = "/" + std::to_string(hosts);
    report::Row row{std::to_string(hosts), std::to_string(hosts * kTransfersEach)};
    for (const std::string& what : {std::string(), std::string("whole_")}) {
      const auto flow = found.median("Plays/" + what + "flow" + at, "seconds");
      const auto simgrid = found.median("Plays/" + what + "simgrid" + at, "seconds");
      row.insert(row.end(), {figure(flow, 1, 1e-3) + " ms", figure(simgrid, 1, 1e-3) + " ms",
                             ratio(simgrid, flow)});
    }
    for (const char* which : {"mean", "worst"})
      row.push_back(figure(found.median("Answers" + at, which), 1, 1e-9) + "e-9");
    rows.push_back(std::move(row));
  }
  const std::string ring = "/" + std::to_string(kRing);
  const auto loggp = found.median("Plays/ring_loggp" + ring, "seconds");
  std::vector<report::Row> rings{
      {"", "processor time", "a message", "times as long", "durations apart"},
      {"`loggp`", figure(loggp, 1, 1e-3) + " ms",
       figure(loggp, 2, 1e-6 * ring_messages(kRing)) + " µs", "", ""}};
  const auto beside = [&](const std::string& what, const std::string& name) {
    const auto took = found.median("Plays/ring_" + name + ring, "seconds");
    rings.push_back({what, figure(took, 1, 1e-3) + " ms",
                     figure(took, 2, 1e-6 * ring_messages(kRing)) + " µs", ratio(took, loggp),
                     figure(found.median("RingAnswers/" + name, "apart"), 1, 1e-9) + "e-9"});
  };
  beside("SimGrid, an actor a rank: put and get in a loop", "actors");
  beside("SimGrid's SMPI: MPI_Allreduce, `smpi/allreduce:lr`, payload not touched", "smpi");
  return {
      "Random transfers of 1, 2, 4, ... 32 MiB that begin within 20 ms, on a fat tree of three "
      "tiers, oversubscribed 2:1 at the leaves and again between pods, 100 Gb/s; SimGrid with "
      "CM02 and links without latency; processor time of one thread; medians of 3 plays. Playing: "
      "the transfers alone, for the second time, so that both know the paths. Whole: once, from "
      "the list of transfers to their ends.\n\n" +
          report::markdown_table(rows) + "\nOne ring all-reduce of " + std::to_string(kRing) +
          " ranks, message by message: " + figure(ring_messages(kRing)) +
          " messages of 1 MiB, NICs of 100 Gb/s and 2 µs; SimGrid with CM02, too; durations are "
          "compared with " +
          std::to_string(kAnsweringRing) + " ranks.\n\n" + report::markdown_table(rings),
      {}};
}

}  // namespace ghostrank::bench
