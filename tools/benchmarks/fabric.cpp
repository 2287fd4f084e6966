// Messages of one size, sent one way between two processes on loopback over libfabric (a broadcast
// cut into slices), against a bare libfabric loop on the same provider and against iperf3. Counters
// give messages and bytes; the kernel copies every payload byte.
#include <cstdlib>
#include <unistd.h>

#include <benchmark/benchmark.h>
#include <nlohmann/json.hpp>

#include "tools/benchmarks/found.h"
#include "tools/benchmarks/peers/bare_libfabric.h"
#include "tools/benchmarks/two_processes.h"

namespace ghostrank::bench {
namespace {

void count(benchmark::State& state, std::uint64_t messages, std::uint64_t bytes, double seconds) {
  state.SetIterationTime(seconds);
  state.counters["messages"] = static_cast<double>(messages);
  state.counters["bytes"] = static_cast<double>(messages * bytes);
  state.counters["payload_touched"] = 1;
  state.counters["messages_per_second"] = static_cast<double>(messages) / seconds;
  state.counters["MB_per_second"] = static_cast<double>(messages * bytes) / seconds * 1e-6;
}

std::uint64_t messages_of(std::uint64_t bytes) {
  return bytes >= 65536 ? (1ULL << 30) / bytes : 4'000'000;
}

void GhostrankStream(benchmark::State& state) {
  const auto bytes = static_cast<std::uint64_t>(state.range(0));
  const auto ranks = static_cast<int>(state.range(1));
  const auto pairs = static_cast<std::uint64_t>(ranks / 2);
  const std::uint64_t each = std::max<std::uint64_t>(1, messages_of(bytes) / pairs);
  const std::uint64_t messages = each * pairs;
  const BenchJob job = stream_job(ranks, each, bytes);
  for (auto _ : state) {
    const auto result = play_as_two(job);
    if (!result) return state.SkipWithError("the run did not end well");
    count(state, messages, bytes, result->played_wall_seconds);
  }
}

void BareLibfabricStream(benchmark::State& state) {
  const auto bytes = static_cast<std::uint64_t>(state.range(0));
  for (auto _ : state) {
    const double seconds = bare_stream_seconds(kLoopbackProvider, bytes, messages_of(bytes));
    count(state, messages_of(bytes), bytes, seconds);
  }
}

// The usual tool: one TCP stream with writes of `bytes` each.
void Iperf3Stream(benchmark::State& state) {
  const auto bytes = static_cast<std::uint64_t>(state.range(0));
  const std::uint64_t total = messages_of(bytes) * bytes;
  static int port = 42000 + static_cast<int>(getpid() % 20000);
  for (auto _ : state) {
    const std::string at = std::to_string(port++), wait = "sleep 0.3";
    const std::string command = "iperf3 -s -1 -p " + at + " >/dev/null 2>&1 & " + wait +
                                "; iperf3 -c 127.0.0.1 -p " + at + " -l " + std::to_string(bytes) +
                                " -n " + std::to_string(total) + " -J 2>/dev/null";
    std::string said;
    std::FILE* pipe = popen(command.c_str(), "r");
    for (char text[4096]; pipe && std::fgets(text, sizeof text, pipe);) said += text;
    if (pipe) pclose(pipe);
    const auto found = nlohmann::json::parse(said, nullptr, false);
    if (found.is_discarded() || !found.contains("end"))
      return state.SkipWithError("iperf3 did not run: is it installed?");
    count(state, messages_of(bytes), bytes, found["end"]["sum_received"]["seconds"].get<double>());
  }
}

void nine(benchmark::internal::Benchmark* b) {
  b->UseManualTime()->Iterations(1)->Repetitions(9)->Unit(benchmark::kMillisecond);
}
BENCHMARK(BareLibfabricStream)->Arg(1 << 20)->Arg(1 << 16)->Arg(64)->Apply(nine);
BENCHMARK(Iperf3Stream)->Arg(1 << 20)->Apply(nine);
BENCHMARK(GhostrankStream)
    ->Args({1 << 20, 2})
    ->Args({1 << 20, 4096})
    ->Args({1 << 16, 2})
    ->Args({64, 2})
    ->Args({64, 4096})
    ->Apply(nine);

report::Row sizes(const Found& found, const std::string& what, const std::string& bytes,
                  const std::string& counter, int decimals, double unit, const std::string& aim) {
  const auto bare = found.median("BareLibfabricStream/" + bytes, counter),
             iperf3 = found.median("Iperf3Stream/" + bytes, counter),
             two = found.median("GhostrankStream/" + bytes + "/2", counter),
             many = found.median("GhostrankStream/" + bytes + "/4096", counter);
  return {what,
          figure(bare, decimals, unit),
          figure(iperf3, decimals, unit),
          figure(two, decimals, unit),
          ratio(two, bare),
          figure(many, decimals, unit),
          ratio(many, bare),
          aim};
}

}  // namespace

Section section(const Found& found) {
  return {
      "Provider net, two processes on loopback, one way; the kernel copies every payload byte; "
      "medians of 9 plays.\n\n" +
          report::markdown_table(
              {{"messages", "bare loop", "iperf3", "ghostrank, 2 ranks", "to bare",
                "4,096 ranks sharing it", "to bare", "aim"},
               sizes(found, "1,024 of 1 MiB (2,048 for 4,096 ranks), GB/s", "1048576",
                     "MB_per_second", 1, 1e3, "0.95 and 0.85 of bare, above iperf3"),
               sizes(found, "16,384 of 64 KiB, GB/s", "65536", "MB_per_second", 1, 1e3, ""),
               sizes(found, "4,000,000 of 64 B, in frames of 64 KiB, M messages/s", "64",
                     "messages_per_second", 2, 1e6, "8 M messages/s of many ranks")}),
      {}};
}

}  // namespace ghostrank::bench
