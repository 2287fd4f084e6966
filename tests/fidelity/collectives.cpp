// Gloo's collectives, called through torch.distributed, beside ghostrank's of the library `gloo` on
// the same links: time of a call, and the bytes of every ordered pair.
#include <algorithm>

#include "tests/fidelity/cases.h"
#include "tests/fidelity/gloo_bytes.h"

namespace ghostrank::fidelity {
namespace {

using testing::Lab;

struct Call {
  const char* name;
  Func func;
  // Whether the count of a Collective is of one rank's block, and `size` of all blocks.
  bool blocks;
};
constexpr Call kCalls[] = {{"all_reduce", Func::all_reduce, false},
                           {"all_gather", Func::all_gather, true},
                           {"broadcast", Func::broadcast, false},
                           {"all_to_all", Func::all_to_all, true}};
constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kSizes[] = {kMiB, 4 * kMiB, 16 * kMiB};
constexpr int kTimed = 2, kBarriers = 200;
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

struct Side {
  std::map<std::uint64_t, double> seconds;
};

// What the library took, and whether its bytes were the schedule's.
Side time_torch(Lab& lab, TorchGroup& torch, const Call& call, Findings& out) {
  const int n = torch.size();
  Side side;
  for (const std::uint64_t size : kSizes) {
    Bytes before = payload_sent(lab, n);
    side.seconds[size] = most_seconds(torch.ask(order(call.name, size, kTimed)));
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
  return side;
}

void compare_group(Lab& lab, int n, std::vector<Row>& rows, Findings& out) {
  TorchGroup torch(lab, n, {{{{1000}, 0, 0}}, 0, 25});
  lab.shape({kSlow, kBurst});
  for (const Call& call : kCalls) {
    const Side theirs = time_torch(lab, torch, call, out);
    const Side ours{bench(
        lab, n, std::string(call.name) + " -b 1M -e 16M -f 4 -w 1 -n " + std::to_string(kTimed))};
    for (const std::uint64_t size : kSizes) {
      const double torch_s = theirs.seconds.at(size), ours_s = ours.seconds.at(size);
      rows.push_back({call.name, std::to_string(n), std::to_string(size / kMiB) + " MiB",
                      milliseconds(torch_s), milliseconds(ours_s),
                      percent(hold(out,
                                   std::string(call.name) + " of " + std::to_string(size / kMiB) +
                                       " MiB, n=" + std::to_string(n),
                                   ours_s, torch_s, kMost))});
    }
  }
  const double torch_s = most_seconds(torch.ask(order("barrier", 0, kBarriers)));
  const double ours_s =
      bench(lab, n, "barrier -w 1 -n " + std::to_string(kBarriers)).begin()->second;
  rows.push_back({"barrier", std::to_string(n), "", milliseconds(torch_s), milliseconds(ours_s),
                  "not bounded"});
}

}  // namespace

Findings compare_collectives(const Options&) {
  Findings out;
  Lab lab;
  std::vector<Row> rows{{"collective", "ranks", "size", "gloo", "ghostrank", ""}};
  for (const int n : {2, 4}) compare_group(lab, n, rows, out);
  out.markdown = "Links of " + megabits(kSlow) +
                 "; time of a call, calls back to back, of the rank that takes longest. A barrier "
                 "carries nothing: "
                 "its time is that of the two programs to wake up.\n\n" +
                 markdown_table(rows);
  return out;
}

}  // namespace ghostrank::fidelity
