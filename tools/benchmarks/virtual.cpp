// Whole jobs in virtual time: processor seconds, wall time and memory of a process that plans and
// plays one step, with one engine thread and with two. Computes take unequal times (run.jitter),
// which the published jobs leave out. Jobs that take minutes are played only where
// GHOSTRANK_BENCH_LONG is set.
#include <chrono>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "tools/benchmarks/found.h"
#include "tools/benchmarks/jobs.h"

namespace ghostrank::bench {
namespace {

constexpr const char* kJitter = "0.05";  // relative standard deviation

struct Case {
  const char* name;
  const char* what;
  const char* job;
  std::vector<std::string> overrides;
  int most_threads;
  int plays;  // 1: long
  const char* aim;

  bool is_long() const { return plays == 1; }
};

const std::vector<Case> kCases{
    {"gpt3",
     "GPT-3 175B, 1,024 ranks, message by message",
     "gpt3-175b-megatron",
     {},
     2,
     5,
     "9 M messages/s with two threads"},
    {"gpt3_4k",
     "GPT-3 175B, 4,096 ranks, message by message",
     "gpt3-175b-megatron",
     {"cluster.nodes=512", "parallel.dp=32", "parallel.global_batch=2048"},
     2,
     3,
     "9 M messages/s with two threads"},
    {"llama3_flow", "Llama-3 405B, 16,384 ranks, as flows", "llama3-405b", {}, 1, 5, "20 s, 1 GiB"},
    {"llama3_loggp",
     "Llama-3 405B, 16,384 ranks, message by message",
     "llama3-405b",
     {"fabric.network=loggp"},
     2,
     1,
     "3.6 M messages/s with two threads, 1 GiB"},
    {"llama3_128k",
     "Llama-3 405B, 131,072 ranks, as flows",
     "llama3-405b",
     {"cluster.nodes=16384", "parallel.global_batch=16384",
      "cluster.topology={kind: fat_tree, places: 24576, pods: 64, leaves: 12288, "
      "pod_oversubscription: 7}"},
     1,
     1,
     "5 min, 4 GiB"},
};

void play(benchmark::State& state, const Case& c, int threads) {
  std::vector<std::string> overrides{"run.shards=" + std::to_string(threads),
                                     std::string("run.jitter=") + kJitter};
  overrides.insert(overrides.end(), c.overrides.begin(), c.overrides.end());
  for (auto _ : state) {
    const auto began = std::chrono::steady_clock::now();
    const auto child = in_child([&] { return play_step(c.job, overrides); });
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - began;
    if (!child || child->said == 0) return state.SkipWithError("the run did not end well");
    state.SetIterationTime(wall.count());
    state.counters["wall"] = wall.count();
    state.counters["cpu"] = child->cpu_seconds;
    state.counters["messages"] = child->said;
    state.counters["MiB"] = child->most_resident_kib / 1024;
  }
}

std::string name_of(const Case& c, int threads) {
  return std::string(c.name) + "/" + std::to_string(threads);
}

const bool kRegistered = [] {
  for (const Case& c : kCases) {
    if (c.is_long() && !std::getenv("GHOSTRANK_BENCH_LONG")) continue;
    for (int threads = 1; threads <= c.most_threads; ++threads)
      benchmark::RegisterBenchmark(name_of(c, threads).c_str(),
                                   [&c, threads](benchmark::State& s) { play(s, c, threads); })
          ->UseManualTime()
          ->Iterations(1)
          ->Repetitions(c.plays)
          ->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace

Section section(const Found& found) {
  std::vector<report::Row> rows{{"", "threads", "messages", "processor time", "wall time, least",
                                 "M messages/s", "memory", "aim"}};
  std::string beside, not_played;
  for (const Case& c : kCases) {
    if (!found.median(name_of(c, 1), "cpu")) {
      not_played += std::string("\n* not played: ") + c.what + " (aim: " + c.aim + ")";
      continue;
    }
    for (int threads = 1; threads <= c.most_threads; ++threads) {
      const std::string name = name_of(c, threads);
      const auto of = [&](const char* counter) { return found.median(name, counter); };
      const auto wall = found.least(name, "wall");
      rows.push_back({threads == 1 ? c.what : "", std::to_string(threads),
                      figure(of("messages"), 1, 1e6) + " M", figure(of("cpu"), 2) + " s",
                      figure(wall, 2) + " s", wall ? figure(*of("messages") / *wall, 1, 1e6) : "-",
                      figure(of("MiB")) + " MiB", threads == c.most_threads ? c.aim : ""});
    }
    const std::string one = name_of(c, 1), two = name_of(c, 2);
    if (c.most_threads == 2 && found.median(two, "cpu"))
      beside += std::string("\n* ") + c.name + ": with two threads " +
                ratio(found.least(one, "wall"), found.least(two, "wall")) +
                " times as fast (aim: 1.6), " +
                ratio(found.median(two, "cpu"), found.median(one, "cpu")) +
                " times the processor time (aim: at most 1.25)";
  }
  return {
      std::string("One step of each job, planning included, every message counted, matched and, "
                  "where the library has them, with its credits; computes vary (run.jitter: ") +
          kJitter +
          "); medians of 5 plays (4,096 ranks: 3; Llama-3 message by message and 131,072 ranks: "
          "1).\n\n" +
          report::markdown_table(rows) + beside + not_played + "\n",
      {}};
}

}  // namespace ghostrank::bench
