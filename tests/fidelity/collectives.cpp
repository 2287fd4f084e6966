// Gloo's collectives, called through torch.distributed, beside ghostrank's of the library `gloo` on
// the same links: time of a call, and the bytes of every ordered pair.
#include <algorithm>
#include <limits>

#include "tests/fidelity/cases.h"
#include "tests/fidelity/gloo_bytes.h"

namespace ghostrank::fidelity {
namespace {

using testing::Lab;

struct Call {
  const char* name;
  Func func;
  bool blocks = false;  // a Collective's count is of one rank's block, and `size` of all blocks
};
constexpr Call kCalls[] = {{"all_reduce", Func::all_reduce},
                           {"all_gather", Func::all_gather, true},
                           {"broadcast", Func::broadcast},
                           {"all_to_all", Func::all_to_all, true}};

// Whether two ranks send each other whole blocks over the connection that they share. Then gloo
// races: what says that a message may come waits behind data that has left already, so a call takes
// between one and two times what the link needs, as its ranks happen to begin it.
bool races(const Call& call, int n) {
  return call.func == Func::all_to_all || (call.func == Func::all_gather && n == 2);
}
constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kSizes[] = {kMiB, 4 * kMiB, 16 * kMiB};
constexpr int kTimed = 3, kBarriers = 200;
constexpr double kMost = 0.05;

std::string order(const std::string& name, std::uint64_t size, int calls) {
  return "collective " + name + " " + std::to_string(size) + " " + std::to_string(calls);
}

// Seconds per call of the rank that took longest: a sender is done when the kernel has its bytes
// with gloo, and when the fabric has taken the message with ghostrank.
double most_seconds(const std::vector<json>& answers) {
  double most = 0;
  for (const json& answer : answers) most = std::max(most, answer["seconds"].get<double>());
  return most;
}

// By size; a barrier has one row, of size 0.
std::map<std::uint64_t, double> bench(Lab& lab, int n, const std::string& arguments) {
  const json result = play(lab, n,
                           "bench " + arguments + " --library gloo --ranks " + std::to_string(n) +
                               " -a 3 --nic-rate 0 --dilation 1 --fabric ofi -s run.probe_ms=0");
  std::map<std::uint64_t, double> seconds;
  for (const json& row : result["results"])
    seconds[row["size"]] = row["out_of_place"]["time"].get<double>() * 1e-6;
  return seconds;
}

std::string least_and_most(const std::vector<json>& answers) {
  double least = std::numeric_limits<double>::max(), most = 0;
  for (std::size_t i = 0; i < answers.front()["calls"].size(); ++i) {
    double slowest = 0;
    for (const json& answer : answers)
      slowest = std::max(slowest, answer["calls"][i].get<double>());
    least = std::min(least, slowest);
    most = std::max(most, slowest);
  }
  return milliseconds(least) + " to " + milliseconds(most);
}

// What the library took by size; checks that its bytes were the schedule's.
using Times = std::map<std::uint64_t, std::vector<json>>;
Times time_torch(Lab& lab, TorchGroup& torch, const Call& call, Findings& out) {
  const int n = torch.size();
  Times times;
  for (const std::uint64_t size : kSizes) {
    Bytes before = payload_sent(lab, n);
    times[size] = torch.ask(order(call.name, size, kTimed));
    Bytes sent = payload_sent(lab, n);
    add(sent, before, -1);
    const std::uint64_t count = size / 4 / (call.blocks ? static_cast<std::uint64_t>(n) : 1);
    Bytes expected = gloo_bytes({Func::barrier, n}).payload;
    add(expected, gloo_bytes({call.func, n, count, 4}).payload, 1 + kTimed);
    hold_bytes(
        out,
        std::string(call.name) + " of " + std::to_string(size) + " bytes, n=" + std::to_string(n),
        expected, sent);
  }
  return times;
}

void compare_group(Lab& lab, int n, std::vector<Row>& rows, Findings& out) {
  TorchGroup torch(lab, n, {{{{1000}, 0, 0}}, 0, 25});
  lab.shape({kSlow, kBurst});
  for (const Call& call : kCalls) {
    const Times theirs = time_torch(lab, torch, call, out);
    const auto ours = bench(
        lab, n, std::string(call.name) + " -b 1M -e 16M -f 4 -w 1 -n " + std::to_string(kTimed));
    for (const std::uint64_t size : kSizes) {
      const std::vector<json>& answers = theirs.at(size);
      const std::string what = std::string(call.name) + " of " + std::to_string(size / kMiB) +
                               " MiB, n=" + std::to_string(n);
      const double torch_s = most_seconds(answers), ours_s = ours.at(size);
      rows.push_back({call.name, std::to_string(n), std::to_string(size / kMiB) + " MiB",
                      milliseconds(torch_s), least_and_most(answers), milliseconds(ours_s),
                      races(call, n) ? percent(ours_s / torch_s - 1) + ", gloo races"
                                     : percent(hold(out, what, ours_s, torch_s, kMost))});
    }
  }
  const double torch_s = most_seconds(torch.ask(order("barrier", 0, kBarriers)));
  const double ours_s =
      bench(lab, n, "barrier -w 1 -n " + std::to_string(kBarriers)).begin()->second;
  rows.push_back({"barrier", std::to_string(n), "", milliseconds(torch_s), "", milliseconds(ours_s),
                  "not bounded"});
}

}  // namespace

Findings compare_collectives(const Options&) {
  Findings out;
  Lab lab;
  std::vector<Row> rows{{"collective", "ranks", "size", "gloo", "its calls", "ghostrank", ""}};
  for (const int n : {2, 4}) compare_group(lab, n, rows, out);
  out.markdown = "Links of " + megabits(kSlow) +
                 "; time of a call, calls back to back, of the rank that takes longest. A barrier "
                 "carries nothing: "
                 "its time is that of the two programs to wake up.\n\n" +
                 markdown_table(rows);
  return out;
}

}  // namespace ghostrank::fidelity
