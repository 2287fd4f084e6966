// Time itself: the lateness of delays, the rate of paced sends and the drift of the clock, with few
// and many ranks on two hosts, alone and beside a program that takes a whole core.
//
// Drift compares the difference in wall time of a longer and a shorter run with the difference that
// it should have, so that the cost of starting and ending cancels out.
#include <cstdio>
#include <fstream>
#include <numeric>

#include "tests/fidelity/cases.h"
#include "tests/fidelity/peers.h"

namespace ghostrank::fidelity {
namespace {

using testing::Lab;

constexpr int kShort = 5, kLong = 15;  // iterations of about one second
constexpr double kTenMinutes = 600;    // seconds
constexpr int kRanks[] = {10, 1000, 10000};

constexpr char kJob[] =
    "schema: ghostrank/job/1\n"
    "model: {kind: layers, name: time, layers: [{parameters: [2048], forward_us: 200000, "
    "backward_us: 250000}], optimizer_us: 50000}\n"
    "cluster: {nodes: 10, gpus_per_node: 1, nics_per_node: 1, nic: {rate: 1Mbps}}\n"
    "parallel: {framework: ddp}\n"
    "collectives: {library: generic, allreduce: recursive_doubling, slice: 2KiB}\n"
    "scale: {dilation: 1}\n"
    "fabric: {kind: ofi}\n"
    "run: {warmup: 2, probe_ms: 0, jitter: 0.02}\n";

double emulated_seconds(const json& result) {
  return std::accumulate(
      result["iterations"].begin(), result["iterations"].end(), 0.0,
      [](double sum, const json& i) { return sum + i["seconds"].get<double>(); });
}

json play_ranks(Lab& lab, int ranks, int iterations) {
  return play(
      lab, 2,
      "run " + lab.file("time.yaml") + " -s cluster.nodes=" + std::to_string(ranks) +
          " -s run.iterations=" + std::to_string(iterations),
      kLongestPlay + std::chrono::seconds(3 * iterations));  // at least twice what they take
}

std::string microseconds(const json& value) {
  return std::to_string(static_cast<int>(value.get<double>() + 0.5)) + " µs";
}

// The lab's hosts run nothing else; the neighbour runs somewhere on the machine.
Row measure(Lab& lab, int ranks, bool neighbour, bool longer) {
  pid_t busy = -1;
  if (neighbour) busy = lab.start("sh -c 'while :; do :; done'", "neighbour");
  const json before = play_ranks(lab, ranks, kShort);
  const int iterations =
      longer ? kShort + static_cast<int>(kTenMinutes / emulated_seconds(before) * kShort) : kLong;
  const json result = play_ranks(lab, ranks, iterations);
  if (neighbour) lab.stop(busy);
  const json& f = result["fidelity"];
  const auto wall = [](const json& r) { return r["played_wall_seconds"].get<double>(); };
  const double lasted = emulated_seconds(result) - emulated_seconds(before),
               drift = (wall(result) - wall(before)) / lasted - 1;
  return {std::to_string(ranks),
          neighbour ? "yes" : "no",
          microseconds(f["lateness_us"]["p50"]),
          microseconds(f["lateness_us"]["p99"]),
          microseconds(f["lateness_us"]["max"]),
          percent(f["critical_lateness"]),
          percent(f["rate_error"]),
          percent(drift) + " in " + std::to_string(static_cast<int>(lasted + 0.5)) + " s",
          f["faithful"].get<bool>() ? "yes" : "no: " + f["reason"].get<std::string>()};
}

}  // namespace

Findings measure_time(const Options& options) {
  Findings out;
  if (options.longer) out.section = "ten-minutes";
  Lab lab(2);
  std::ofstream(lab.file("time.yaml")) << kJob;
  std::vector<Row> rows{{"ranks", "busy neighbour", "late, p50", "p99", "most",
                         "of the critical path", "paced rate", "drift", "faithful"}};
  for (const bool neighbour : {false, true})
    for (const int ranks : kRanks) {
      if (options.ranks != 0 && options.ranks != ranks) continue;
      rows.push_back(measure(lab, ranks, neighbour, options.longer));
      std::fputs(markdown_line(rows.back()).c_str(), stderr);
    }
  out.markdown =
      "Two processes over libfabric, dilation 1, steps of about a second; an all-reduce of 8 "
      "KiB "
      "by recursive doubling in messages of 2 KiB over NICs of 1 Mbit/s.\n\n" +
      markdown_table(rows);
  return out;
}

}  // namespace ghostrank::fidelity
