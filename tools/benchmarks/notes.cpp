// What a note of an agent costs beside a message of a ring: virtual time, one engine thread, 1,024
// ranks on nodes of their own and 128 servers with NICs like theirs. An iteration's cost is what
// longer plays take beyond short ones, so that neither planning nor the first touch of memory is
// in it.
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "profiles/planners/plan.h"
#include "tools/benchmarks/found.h"
#include "tools/benchmarks/jobs.h"

namespace ghostrank::bench {
namespace {

constexpr int kShort = 1, kLong = 5;  // measured iterations

struct Case {
  const char* name;
  const char* what;
  std::vector<std::string> overrides;
};

const std::vector<Case> kCases{
    {"ring",
     "ring, ResNet-50 in DDP's buckets",
     {"model=resnet50", "servers.count=0", "parallel={framework: ddp, launch: flat}",
      "collectives={library: generic, allreduce: ring}"}},
    {"byteps",
     "BytePS, VGG16 in pieces of 1 MiB",
     {"parallel={framework: byteps, partition_bytes: 1048576}"}},
    {"phub",
     "PHub, VGG16 in chunks of 1 MiB",
     {"parallel={framework: phub, partition_bytes: 1048576}"}},
    {"omnireduce",
     "OmniReduce, ResNet-50 in dense blocks of 64 KiB, 8 slots a server",
     {"model=resnet50", "parallel={framework: ddp, launch: flat}",
      "collectives={library: generic, allreduce: omnireduce}",
      "omnireduce={block: 16384, columns: 1, slots: 8}"}},
};

// Plays the job. Returns its messages between nodes in an iteration; 0: it did not end well.
double play_iterations(const Case& c, int iterations) {
  std::vector<std::string> all{
      "cluster={nodes: 1024, gpus_per_node: 1, nics_per_node: 1, nic: {rate: 400Gbps, latency_us: "
      "2}}",
      "servers={count: 128, placement: dedicated, nic: {rate: 400Gbps, latency_us: 2}}",
      "fabric.kind=virtual",
      "run.warmup=1",
      "run.iterations=" + std::to_string(iterations),
      "run.shards=1"};
  all.insert(all.end(), c.overrides.begin(), c.overrides.end());
  const LoadedJob job = load_job("vgg16-byteps", all);
  const auto control = Control::meet(World{});
  Observer nobody;
  const Result result = run_job(job, plan_workload(job.spec), *control, {}, nobody);
  return result.interrupted.empty() ? result.messages_per_iteration : 0;
}

void play(benchmark::State& state, const Case& c) {
  for (auto _ : state) {
    const auto few = in_child([&] { return play_iterations(c, kShort); });
    const auto more = in_child([&] { return play_iterations(c, kLong); });
    if (!few || !more || more->said == 0) return state.SkipWithError("the run did not end well");
    const double seconds = (more->cpu_seconds - few->cpu_seconds) / (kLong - kShort);
    state.SetIterationTime(seconds);
    state.counters["messages"] = more->said;
    state.counters["us"] = seconds / more->said * 1e6;
    state.counters["MiB"] = more->most_resident_kib / 1024;
  }
}

const bool kRegistered = [] {
  for (const Case& c : kCases)
    benchmark::RegisterBenchmark(c.name, [&c](benchmark::State& s) { play(s, c); })
        ->UseManualTime()
        ->Iterations(1)
        ->Repetitions(5)
        ->Unit(benchmark::kMillisecond);
  return true;
}();

}  // namespace

Section section(const Found& found) {
  std::vector<report::Row> rows{
      {"", "messages an iteration", "processor time a message", "to the ring", "memory", "aim"}};
  const auto ring = found.median(kCases.front().name, "us");
  for (const Case& c : kCases) {
    const auto of = [&](const char* counter) { return found.median(c.name, counter); };
    const bool is_ring = &c == &kCases.front();
    rows.push_back({c.what, figure(of("messages"), 2, 1e6) + " M", figure(of("us"), 3) + " µs",
                    ratio(of("us"), ring), figure(of("MiB")) + " MiB", is_ring ? "" : "3"});
  }
  return {
      "1,024 ranks and 128 servers in virtual time, one engine thread, every message counted; "
      "what an iteration more takes, medians of 5.\n\n" +
          report::markdown_table(rows),
      {}};
}

}  // namespace ghostrank::bench
