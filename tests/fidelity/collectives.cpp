#include "tests/fidelity/collectives.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "tests/fidelity/gloo_bytes.h"

namespace ghostrank::fidelity {
namespace {

using testing::Lab;

constexpr std::uint64_t kMiB = 1 << 20, kWarmBytes = 16 * kMiB;
constexpr int kBarriers = 200;
// Of the library, whose median stands in the table: TCP may lose a packet at the end of a call,
// which then lasts 200 ms longer.
constexpr int kRounds = 3;

int timed(std::uint64_t size) { return size > 4 * kMiB ? 2 : size > kMiB ? 3 : 9; }

// Calls that are not timed: until TCP's windows have grown to what the call takes, on both sides.
// More ranks have more connections to share its bytes.
int warmups(std::uint64_t size, int n) {
  return size == 0 ? 1 : static_cast<int>(kWarmBytes / size) * std::max(1, n / 2);
}

std::string order(const Call& call, std::uint64_t size, int untimed, int calls,
                  bool separate = false) {
  return (separate ? "separate " : "collective ") + call.name + " " + std::to_string(size) + " " +
         std::to_string(untimed) + " " + std::to_string(calls) +
         (call.algorithm.empty() ? "" : " " + call.algorithm);
}

// Seconds per call of the rank that took longest: a sender is done when the kernel or the library
// has its bytes, and when the fabric has taken the message with ghostrank.
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
               std::to_string(warmups(size, n)) + " -n " + std::to_string(calls) + " --library " +
               library.name + " --ranks " + std::to_string(n) +
               " -a 3 --nic-rate 0 --dilation 1 --fabric ofi -s run.probe_ms=0");
  return result["results"][0]["out_of_place"]["time"].get<double>() * 1e-6;
}

// Of each call, of the rank that took longest.
std::vector<double> calls_of(const std::vector<json>& answers) {
  std::vector<double> calls(answers.front()["calls"].size());
  for (const json& answer : answers)
    for (std::size_t i = 0; i < calls.size(); ++i)
      calls[i] = std::max(calls[i], answer["calls"][i].get<double>());
  return calls;
}

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

std::string named(const Call& call) {
  return call.algorithm.empty() ? call.name : call.name + ", " + call.algorithm;
}

// What the library took by size; checks that its bytes were the schedule's.
struct Times {
  std::vector<double> rounds;  // seconds a call
  std::vector<double> calls;   // of all rounds
};
std::map<std::uint64_t, Times> time_library(Lab& lab, Workers& workers, const Library& library,
                                            const Call& call, Findings& out) {
  const int n = workers.size();
  std::map<std::uint64_t, Times> times;
  for (const std::uint64_t size : library.sizes) {
    Bytes before = payload_sent(lab, n);
    for (int round = 0; round < kRounds; ++round) {
      const std::vector<json> answers = workers.ask(
          order(call, size, round == 0 ? warmups(size, n) : 0, timed(size), library.separate));
      times[size].rounds.push_back(most_seconds(answers));
      std::ranges::copy(calls_of(answers), std::back_inserter(times[size].calls));
    }
    Bytes sent = payload_sent(lab, n);
    add(sent, before, -1);
    const std::uint64_t count = size / 4 / (call.blocks ? static_cast<std::uint64_t>(n) : 1);
    Bytes expected;
    const int between = library.separate ? timed(size) - 1 : 0;
    add(expected, library.payload({Func::barrier, n}, ""), kRounds * (library.barriers + between));
    add(expected, library.payload({call.func, n, count, 4}, call.algorithm),
        warmups(size, n) + kRounds * timed(size));
    hold_bytes(out, named(call) + " of " + std::to_string(size) + " bytes, n=" + std::to_string(n),
               expected, sent);
  }
  return times;
}

}  // namespace

Row heading(const Library& library) {
  return {"collective", "ranks", "size", library.title, "its calls", "ghostrank", ""};
}

std::vector<std::uint64_t> sizes_of(const Options& options) {
  if (options.quick) return {kMiB, 4 * kMiB};
  return {kMiB, 4 * kMiB, 16 * kMiB};
}

void compare_calls(Lab& lab, Workers& workers, const Library& library, std::vector<Row>& rows,
                   Findings& out) {
  const int n = workers.size();
  for (const Call& call : library.calls) {
    const auto theirs = time_library(lab, workers, library, call, out);
    for (const std::uint64_t size : library.sizes) {
      const auto& [rounds, calls] = theirs.at(size);
      const std::string mib = std::to_string(size / kMiB) + " MiB",
                        what = named(call) + " of " + mib + ", n=" + std::to_string(n),
                        free = library.unbounded(call, n);
      const double theirs_s = median_of(library.separate ? calls : rounds),
                   ours_s = bench(lab, n, library, call, size, library.separate ? 1 : timed(size));
      const Row& row = rows.emplace_back(Row{
          named(call), std::to_string(n), mib, milliseconds(theirs_s),
          milliseconds(std::ranges::min(calls)) + " to " + milliseconds(std::ranges::max(calls)),
          milliseconds(ours_s),
          free.empty() ? percent(hold(out, what, ours_s, theirs_s, library.most))
                       : percent(ours_s / theirs_s - 1) + ", " + free});
      std::fputs(markdown_line(row).c_str(), stderr);
    }
  }
  const Call barrier{"barrier", Func::barrier};
  const double theirs_s = most_seconds(workers.ask(order(barrier, 0, 1, kBarriers)));
  const double ours_s = bench(lab, n, library, barrier, 0, kBarriers);
  rows.push_back({"barrier", std::to_string(n), "", milliseconds(theirs_s), "",
                  milliseconds(ours_s), "not bounded"});
}

}  // namespace ghostrank::fidelity
