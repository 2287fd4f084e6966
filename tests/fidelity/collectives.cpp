#include "tests/fidelity/collectives.h"

#include <algorithm>
#include <cstdio>

#include "tests/fidelity/gloo_bytes.h"

namespace ghostrank::fidelity {
namespace {

using testing::Lab;

constexpr std::uint64_t kMiB = 1 << 20, kWarmBytes = 16 * kMiB;
constexpr int kBarriers = 200;

int timed(std::uint64_t size) { return size > 4 * kMiB ? 3 : size > kMiB ? 9 : 27; }

// Calls that are not timed: until TCP's windows have grown to what the link takes, on both sides.
// More ranks have more connections to share the bytes of a call. Ranks that begin with small
// windows get out of step, and remain so.
int warmups(std::uint64_t size, int n) {
  return size == 0 ? 1 : static_cast<int>(kWarmBytes / size) * std::max(1, n / 2);
}

std::string order(const Call& call, std::uint64_t size, int n, int calls, bool separate = false) {
  return (separate ? "separate " : "collective ") + call.name + " " + std::to_string(size) + " " +
         std::to_string(warmups(size, n)) + " " + std::to_string(calls) +
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

// Of each call, of the rank that took longest; in their order of length.
std::vector<double> calls_of(const std::vector<json>& answers) {
  std::vector<double> calls(answers.front()["calls"].size());
  for (const json& answer : answers)
    for (std::size_t i = 0; i < calls.size(); ++i)
      calls[i] = std::max(calls[i], answer["calls"][i].get<double>());
  std::ranges::sort(calls);
  return calls;
}

std::string named(const Call& call) {
  return call.algorithm.empty() ? call.name : call.name + ", " + call.algorithm;
}

// What the library took by size; checks that its bytes were the schedule's.
using Times = std::map<std::uint64_t, std::vector<json>>;
Times time_library(Lab& lab, Workers& workers, const Library& library, const Call& call,
                   Findings& out) {
  const int n = workers.size();
  Times times;
  for (const std::uint64_t size : library.sizes) {
    Bytes before = payload_sent(lab, n);
    times[size] = workers.ask(order(call, size, n, timed(size), library.separate));
    Bytes sent = payload_sent(lab, n);
    add(sent, before, -1);
    const std::uint64_t count = size / 4 / (call.blocks ? static_cast<std::uint64_t>(n) : 1);
    Bytes expected;
    const int between = library.separate ? timed(size) - 1 : 0;
    add(expected, library.payload({Func::barrier, n}, ""), library.barriers + between);
    add(expected, library.payload({call.func, n, count, 4}, call.algorithm),
        warmups(size, n) + timed(size));
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
    const Times theirs = time_library(lab, workers, library, call, out);
    for (const std::uint64_t size : library.sizes) {
      const std::vector<json>& answers = theirs.at(size);
      const std::string mib = std::to_string(size / kMiB) + " MiB",
                        what = named(call) + " of " + mib + ", n=" + std::to_string(n),
                        free = library.unbounded(call, n);
      const std::vector<double> calls = calls_of(answers);
      const double theirs_s = library.separate ? calls[calls.size() / 2] : most_seconds(answers),
                   ours_s = bench(lab, n, library, call, size, library.separate ? 1 : timed(size));
      const Row& row = rows.emplace_back(Row{
          named(call), std::to_string(n), mib, milliseconds(theirs_s),
          milliseconds(calls.front()) + " to " + milliseconds(calls.back()), milliseconds(ours_s),
          free.empty() ? percent(hold(out, what, ours_s, theirs_s, library.most))
                       : percent(ours_s / theirs_s - 1) + ", " + free});
      std::fputs(markdown_line(row).c_str(), stderr);
    }
  }
  const Call barrier{"barrier", Func::barrier};
  const double theirs_s = most_seconds(workers.ask(order(barrier, 0, n, kBarriers)));
  const double ours_s = bench(lab, n, library, barrier, 0, kBarriers);
  rows.push_back({"barrier", std::to_string(n), "", milliseconds(theirs_s), "",
                  milliseconds(ours_s), "not bounded"});
}

}  // namespace ghostrank::fidelity
