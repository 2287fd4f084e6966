#include "tests/fidelity/cases/collectives.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <thread>

#include "tests/fidelity/gloo_bytes.h"
#include "tools/measure/stolen_time.h"

namespace ghostrank::fidelity {
namespace {

using report::StolenTime;
using testing::Lab;

constexpr std::uint64_t kMiB = 1 << 20, kWarmBytes = 16 * kMiB;
constexpr int kBarriers = 200;
// Medians of the rounds are compared, because TCP may lose a packet at the end of a call, which
// then takes 200 ms longer, and ranks that lost step are slower until their connections have been
// idle.
constexpr int kRounds = 3;
// A round in which the hypervisor took more than this share of the cores is played again after a
// quieter second, whatever its result, but at most kMostReplays times in a row.
constexpr double kMostStolen = 0.01;
constexpr int kMostReplays = 2;

// Number of timed calls. More when ranks begin apart, because those calls vary more.
int timed(const Call& call, std::uint64_t size) {
  return (size > 4 * kMiB ? 2 : size > kMiB ? 3 : 9) * (call.apart_ms > 0 ? 3 : 1);
}

// Calls that are not timed: they let TCP's windows grow to the size of the call, on both sides.
int warmups(std::uint64_t size) { return size == 0 ? 1 : static_cast<int>(kWarmBytes / size); }

std::uint64_t elements(const Call& call, std::uint64_t size, int n) {
  return size / sizeof(float) / (call.blocks ? static_cast<std::uint64_t>(n) : 1);
}

std::string order(const Call& call, std::uint64_t size, int untimed, int calls, bool separate) {
  const std::string how = call.apart_ms > 0 ? "apart"
                          : separate        ? "separate"
                                            : "collective",
                    last = call.apart_ms > 0 ? std::to_string(call.apart_ms) : call.algorithm;
  return how + " " + call.name + " " + std::to_string(size) + " " + std::to_string(untimed) + " " +
         std::to_string(calls) + (last.empty() ? "" : " " + last);
}

// Seconds per call on the slowest rank. A sender is done when the kernel or the library has its
// bytes, in ghostrank when the fabric has taken the message.
double most_seconds(const std::vector<json>& answers) {
  double most = 0;
  for (const json& answer : answers) most = std::max(most, answer["seconds"].get<double>());
  return most;
}

double bench(Lab& lab, int n, const Library& library, const Call& call, std::uint64_t size,
             int calls) {
  const std::string sizes = call.func == Func::barrier
                                ? ""
                                : " -b " + std::to_string(size) + " -e " + std::to_string(size);
  const json result =
      play(lab, n,
           "bench " + call.name + sizes +
               (call.algorithm.empty() ? "" : " --algorithm " + call.algorithm) + " -w " +
               std::to_string(warmups(size)) + " -n " + std::to_string(calls) + " --library " +
               library.name + " --ranks " + std::to_string(n) +
               " -a 3 --nic-rate 0 --dilation 1 --fabric ofi -s run.probe_ms=0");
  return result["results"][0]["out_of_place"]["time"].get<double>() * 1e-6;
}

// Like bench(), as a job in which the ranks meet before each call and rank r then computes for r
// times apart_ms.
double run_apart(Lab& lab, int n, const Library& library, const Call& call, std::uint64_t size,
                 int calls) {
  const std::string last = std::to_string(n - 1), file = lab.file("apart.yaml");
  std::ofstream out(file);
  out << "schema: ghostrank/job/1\n"
         "cluster: {nodes: "
      << n << ", gpus_per_node: 1, nics_per_node: 1, nic: {rate: 0}}\n"
      << "collectives: {library: " << library.name << "}\n"
      << "scale: {dilation: 1}\nfabric: {kind: ofi}\n"
      << "run: {probe_ms: 0, warmup: " << warmups(size) << ", iterations: " << calls << "}\n"
      << "program:\n  ranks: " << n << "\n  groups: {all: [0-" << last << "]}\n  roles:\n";
  for (int r = 0; r < n; ++r)
    out << "    - {name: rank " << r << ", ranks: '" << r << "', iterations: [{compute: \""
        << "barrier all float32 0\\ncompute " << std::int64_t{1'000'000'000} * r * call.apart_ms
        << "\\n"
        << call.name << " all float32 " << elements(call, size, n) << "\\n\"}]}\n";
  out.close();
  const json result = play(lab, n, "run " + file);
  return result["step_time"]["mean"].get<double>();
}

// Seconds of each call, on its slowest rank.
std::vector<double> calls_of(const std::vector<json>& answers) {
  std::vector<double> calls(answers.front()["calls"].size());
  for (const json& answer : answers)
    for (std::size_t i = 0; i < calls.size(); ++i)
      calls[i] = std::max(calls[i], answer["calls"][i].get<double>());
  return calls;
}

std::string named(const Call& call) {
  return call.name + (call.algorithm.empty() ? "" : ", " + call.algorithm) +
         (call.apart_ms == 0 ? "" : ", " + std::to_string(call.apart_ms) + " ms apart");
}

// The result of one side's round, for a call of one size.
struct Round {
  double seconds = 0;            // per call
  std::vector<double> calls;     // of each of the library's calls
  std::uint64_t sent_again = 0;  // segments that TCP retransmitted
};

Round play_library(Lab& lab, Workers& workers, const Library& library, const Call& call,
                   std::uint64_t size, int untimed, Bytes& sent) {
  const Bytes before = payload_sent(lab, workers.size());
  const std::uint64_t again = lab.segments_sent_again();
  const std::vector<json> answers =
      workers.ask(order(call, size, untimed, timed(call, size), library.separate));
  add(sent, payload_sent(lab, workers.size()));
  add(sent, before, -1);
  return {most_seconds(answers), calls_of(answers), lab.segments_sent_again() - again};
}

Round play_ours(Lab& lab, int n, const Library& library, const Call& call, std::uint64_t size) {
  const std::uint64_t again = lab.segments_sent_again();
  const int calls = library.separate ? 1 : timed(call, size);
  const double seconds = call.apart_ms > 0 ? run_apart(lab, n, library, call, size, calls)
                                           : bench(lab, n, library, call, size, calls);
  return {seconds, {}, lab.segments_sent_again() - again};
}

// The TCP payload of so many rounds of the library, by the schedule.
Bytes expected_bytes(int n, const Library& library, const Call& call, std::uint64_t size,
                     int rounds) {
  const int between = library.separate ? timed(call, size) - 1 : 0;
  Bytes expected;
  const int calls = warmups(size) + rounds * timed(call, size);
  add(expected, library.payload({Func::barrier, n}, ""),
      rounds * (library.barriers + between) + (call.apart_ms > 0 ? calls : 0));
  add(expected, library.payload({call.func, n, elements(call, size, n), 4}, call.algorithm), calls);
  return expected;
}

// The results of both sides in the rounds that count.
struct Taken {
  std::vector<double> theirs, calls, ours;  // seconds per call; `calls`: the library's single calls
  std::uint64_t theirs_again = 0, ours_again = 0;
  double stolen = 0;  // share of the cores, in the worst round
};

// Waits until the hypervisor takes no more than kMostStolen of the cores for a second, at most 20
// s.
void await_quiet() {
  for (int i = 0; i < 20; ++i) {
    const StolenTime stolen;
    std::this_thread::sleep_for(std::chrono::seconds(1));
    if (stolen.share() < kMostStolen) return;
  }
}

Taken play_rounds(Lab& lab, Workers& workers, const Library& library, const Call& call,
                  std::uint64_t size, const std::string& what, Findings& out) {
  Taken taken;
  Bytes sent;
  int played = 0;
  for (int replays = 0; std::ssize(taken.ours) < kRounds; ++played) {
    const StolenTime stolen;
    const Round theirs = play_library(lab, workers, library, call, size,
                                      played == 0 ? warmups(size) : 0, sent),
                ours = play_ours(lab, workers.size(), library, call, size);
    const double share = stolen.share();
    if (share > kMostStolen && replays++ < kMostReplays) {
      await_quiet();
      continue;
    }
    replays = 0;
    taken.theirs.push_back(theirs.seconds);
    taken.ours.push_back(ours.seconds);
    std::ranges::copy(theirs.calls, std::back_inserter(taken.calls));
    taken.theirs_again += theirs.sent_again;
    taken.ours_again += ours.sent_again;
    taken.stolen = std::max(taken.stolen, share);
  }
  hold_bytes(out, what, expected_bytes(workers.size(), library, call, size, played), sent);
  return taken;
}

std::string range(const std::vector<double>& seconds) {
  return milliseconds(std::ranges::min(seconds)) + " to " + milliseconds(std::ranges::max(seconds));
}

Row compare(Lab& lab, int n, const Library& library, const Call& call, std::uint64_t size,
            Findings& out) {
  const std::string mib = std::to_string(size / kMiB) + " MiB",
                    what = named(call) + " of " + mib + ", n=" + std::to_string(n),
                    free = library.unbounded(call, n);
  Workers workers = library.start(lab, n);
  const Taken taken = play_rounds(lab, workers, library, call, size, what, out);
  const double theirs = median(library.separate ? taken.calls : taken.theirs),
               ours = median(taken.ours);
  return {named(call),
          std::to_string(n),
          mib,
          milliseconds(theirs),
          range(taken.calls),
          milliseconds(ours),
          range(taken.ours),
          std::to_string(taken.theirs_again) + ", " + std::to_string(taken.ours_again),
          percent(taken.stolen).substr(1),
          free.empty() ? percent(hold(out, what, ours, theirs, library.most))
                       : percent(ours / theirs - 1) + ", " + free};
}

}  // namespace

Row heading(const Library& library) {
  return {"collective", "ranks",      "size",       library.title, "its calls",
          "ghostrank",  "its rounds", "sent again", "stolen",      ""};
}

std::vector<std::uint64_t> sizes_of(const Options& options) {
  if (options.quick) return {kMiB, 4 * kMiB};
  return {kMiB, 4 * kMiB, 16 * kMiB};
}

json compare_calls(Lab& lab, int n, const Library& library, std::vector<Row>& rows, Findings& out) {
  for (const Call& call : library.calls)
    for (const std::uint64_t size : library.sizes) {
      rows.push_back(compare(lab, n, library, call, size, out));
      std::fputs(markdown_line(rows.back()).c_str(), stderr);
    }
  const Call barrier{"barrier", Func::barrier};
  Workers workers = library.start(lab, n);
  const double theirs_s = most_seconds(workers.ask(order(barrier, 0, 1, kBarriers, false)));
  const double ours_s = bench(lab, n, library, barrier, 0, kBarriers);
  rows.push_back({"barrier", std::to_string(n), "", milliseconds(theirs_s), "",
                  milliseconds(ours_s), "", "", "", "not bounded"});
  return workers.hello();
}

}  // namespace ghostrank::fidelity
