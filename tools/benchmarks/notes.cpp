// What a note of an agent costs beside a message of a ring: virtual time, one engine thread, 1,024
// ranks on nodes of their own and 128 servers with NICs like theirs. An iteration's cost is the
// extra processor time of a long play over a short one, which leaves out planning and the first
// touch of memory.
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

#include <benchmark/benchmark.h>

#include "profiles/planners/plan.h"
#include "tools/benchmarks/found.h"
#include "tools/benchmarks/jobs.h"

namespace ghostrank::bench {
namespace {

constexpr int kShort = 1, kLong = 5;  // measured iterations

// The part of the job file that all share.
constexpr const char* kJob = R"(schema: ghostrank/job/1
device: v100-sxm2
precision: {parameters: fp32, gradients: fp32, optimizer: sgd}
cluster: {nodes: 1024, gpus_per_node: 1, nics_per_node: 1, nic: {rate: 400Gbps, latency_us: 2}}
fabric: {kind: virtual}
run: {warmup: 1, shards: 1}
)";
constexpr const char* kServers =
    "servers: {count: 128, placement: dedicated, nic: {rate: 400Gbps, latency_us: 2}}\n";

struct Case {
  const char* name;
  const char* what;
  std::string job;  // the rest of the file
};

const std::vector<Case> kCases{
    {"ring", "ring, ResNet-50 in DDP's buckets",
     "model: resnet50\n"
     "parallel: {framework: ddp, launch: flat, micro_batch: 32}\n"
     "collectives: {library: generic, allreduce: ring}\n"},
    {"byteps", "BytePS, VGG16 in pieces of 1 MiB",
     std::string(kServers) +
         "model: vgg16\n"
         "parallel: {framework: byteps, partition_bytes: 1048576, micro_batch: 32}\n"},
    {"phub", "PHub, VGG16 in chunks of 1 MiB",
     std::string(kServers) +
         "model: vgg16\n"
         "parallel: {framework: phub, partition_bytes: 1048576, micro_batch: 32}\n"},
    {"omnireduce", "OmniReduce, ResNet-50 in dense blocks of 64 KiB, 8 slots a server",
     std::string(kServers) + "model: resnet50\n"
                             "parallel: {framework: ddp, launch: flat, micro_batch: 32}\n"
                             "collectives: {library: generic, allreduce: omnireduce}\n"
                             "omnireduce: {block: 16384, columns: 1, slots: 8}\n"},
};

LoadedJob load(const Case& c, int iterations) {
  const auto file = std::filesystem::temp_directory_path() /
                    ("ghostrank-notes-" + std::to_string(getpid()) + ".yaml");
  std::ofstream(file) << kJob << c.job;
  const LoadedJob job = load_job(file.string(), {"run.iterations=" + std::to_string(iterations)});
  std::filesystem::remove(file);
  return job;
}

// Plays the job. Returns its messages between nodes in an iteration; 0: it did not end well.
double play_iterations(const Case& c, int iterations) {
  const LoadedJob job = load(c, iterations);
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
