// Whether what a run says of itself is so: random jobs are disturbed on purpose, and every figure
// that a run gives and calls valid is compared with the same job in virtual time.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <sstream>

#include "tests/fidelity/cases.h"
#include "tests/fidelity/cases/local.h"

namespace ghostrank::fidelity {
namespace {

constexpr unsigned kRuns = 60, kQuickRuns = 12;
constexpr double kMost = 0.01;

template <typename T>
T one_of(std::mt19937& random, std::initializer_list<T> choices) {
  return choices.begin()[random() % choices.size()];
}

std::string number(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

// Layers whose gradients DDP reduces while the backward pass goes on, in steps of 1 to 10 ms.
std::string random_job(std::mt19937& random) {
  std::ostringstream job;
  job << "schema: ghostrank/job/1\nmodel: {kind: layers, name: random, layers: [\n";
  const int layers = one_of(random, {2, 4});
  const double forward = one_of(random, {200, 500});
  for (int l = 0; l < layers; ++l)
    job << "  {parameters: [" << one_of(random, {1000, 30'000, 300'000})
        << "], forward_us: " << forward << ", backward_us: " << 2 * forward << "}"
        << (l + 1 < layers ? ",\n" : "");
  job << "], optimizer_us: 100}\ncluster: {nodes: " << one_of(random, {2, 4, 8})
      << ", gpus_per_node: " << one_of(random, {1, 2})
      << ", nics_per_node: 1, nic: {rate: " << one_of<const char*>(random, {"25Gbps", "100Gbps"})
      << ", latency_us: 2}}\n"
      << "parallel: {framework: ddp, bucket_cap_mb: 1}\n"
      << "collectives: {library: " << one_of<const char*>(random, {"generic", "gloo", "nccl-2.28"})
      << "}\n"
      << "run: {warmup: 1, iterations: 110}\n";
  return job.str();
}

struct Disturbed {
  std::string what;
  double strength = 0;
};

Disturbed random_disturbance(std::mt19937& random) {
  const auto what = random() % 8;
  if (what < 4) return {"stops", one_of(random, {30.0, 100.0, 300.0, 1000.0})};
  if (what < 6 && Quota::possible()) return {"quota", one_of(random, {0.2, 0.5, 0.8})};
  if (what < 7) return {"a busy program", 1};
  return {"nothing", 0};
}

json play_disturbed(const Folder& folder, unsigned seed, const Disturbed& by,
                    const std::vector<std::string>& arguments) {
  if (by.what == "stops") return play_here(folder, 1, arguments, stops(seed, by.strength));
  if (by.what == "quota") {
    const Quota quota(by.strength, 20);
    return play_here(folder, 1, arguments, quota.disturbance());
  }
  std::optional<Hogs> hogs;
  if (by.what == "a busy program") hogs.emplace(2);
  return play_here(folder, 1, arguments);
}

// A figure of a result, and whether the result calls it valid. `least` and `most`: any value
// between them is as right; a median call of a few kinds may stand anywhere between two of
// them.
struct Claim {
  double value = 0;
  bool valid = false;
  double least = value, most = value;
};

std::map<std::string, Claim> claims_of(const json& result) {
  std::map<std::string, Claim> claims;
  const json& fidelity = result["fidelity"];
  const bool modelled = fidelity["modelled"];
  claims["step_time.median"] = {result["step_time"]["median"], fidelity["faithful"]};
  for (const char* name : {"mean", "p99"}) {
    const std::string figure = std::string("step_time.") + name;
    if (!result["step_time"].contains(name)) continue;
    claims[figure] = {result["step_time"][name],
                      modelled || fidelity["figures"][figure]["valid"].get<bool>()};
  }
  for (const json& c : result["collectives"]) {
    const std::string of =
        " of " + c["op"].get<std::string>() + " " + c["group"].get<std::string>();
    if (c["seconds_median"].is_null() || c["op"] == "send_recv") continue;
    claims["time/call" + of] = {c["seconds_median"], modelled || c["seconds_valid"].get<bool>(),
                                c["seconds_ci95"][0], c["seconds_ci95"][1]};
    claims["algbw" + of] = {c["algbw_GBps"], modelled || c["bandwidth_valid"].get<bool>()};
  }
  return claims;
}

// Counts for one kind of figure over all runs.
struct Tally {
  int valid = 0, false_valid = 0, invalid = 0, false_invalid = 0;
  double worst = 0;  // error of a figure that was called valid

  void add(const Claim& said, const Claim& is) {
    const double truth = std::clamp(said.value, is.least, is.most);
    const double error = truth == 0 ? 0 : std::abs(said.value - truth) / truth;
    (said.valid ? valid : invalid) += 1;
    if (said.valid && error > kMost) ++false_valid;
    if (!said.valid && error <= kMost) ++false_invalid;
    if (said.valid) worst = std::max(worst, error);
  }
};

std::string kind_of(const std::string& figure) { return figure.substr(0, figure.find(" of ")); }

}  // namespace

Findings try_trust(const Options& options) {
  Findings out;
  const Folder folder;
  std::map<std::string, Tally> figures, disturbances;
  const unsigned runs = options.quick ? kQuickRuns : kRuns;
  for (unsigned seed = 1; seed <= runs; ++seed) {
    std::mt19937 random(seed);
    const std::string job = folder.file("job.yaml");
    std::ofstream(job) << random_job(random);
    const Disturbed by = random_disturbance(random);
    const std::string dilation = number(one_of(random, {1.0, 3.0, 10.0}));
    const std::vector<std::string> kind{job, "-s", "fabric.kind=virtual"};
    const auto truth = claims_of(play_here(folder, 1, kind));
    const json played = play_disturbed(
        folder, seed, by, {job, "-s", "fabric.kind=memory", "-s", "scale.dilation=" + dilation});
    for (const auto& [figure, said] : claims_of(played)) {
      const Claim& is = truth.at(figure);
      Tally& tally = figures[kind_of(figure)];
      const int before = tally.false_valid;
      tally.add(said, is);
      if (figure == "step_time.median") disturbances[by.what].add(said, is);
      std::fprintf(stderr, "%u %s %g, dilation %s: %s %.6g, in virtual time %.6g, %s%s\n", seed,
                   by.what.c_str(), by.strength, dilation.c_str(), figure.c_str(), said.value,
                   is.value, said.valid ? "valid" : "not valid",
                   tally.false_valid > before ? " FALSE" : "");
    }
  }
  const auto table = [&](const char* first, const std::map<std::string, Tally>& tallies) {
    std::vector<Row> rows{{first, "called valid", "of these off by more than 1 %", "the worst",
                           "called not valid", "of these within 1 %"}};
    for (const auto& [name, t] : tallies) {
      rows.push_back({name, std::to_string(t.valid), std::to_string(t.false_valid),
                      percent(t.worst), std::to_string(t.invalid),
                      std::to_string(t.false_invalid)});
      if (t.false_valid > 0)
        out.misses.push_back(name + ": " + std::to_string(t.false_valid) +
                             " called valid that are off by more than 1 %");
    }
    return markdown_table(rows);
  };
  out.markdown =
      std::to_string(runs) +
      " seeded random jobs in memory at dilation 1, 3 or 10, disturbed for all their "
      "time: stopped for 0.3 to 5 ms every 30 to 1,000 ms, or with a CPU quota of 0.2 to "
      "0.8 cores, or beside two busy programs, or not at all. Truth is the same job in "
      "virtual time; where its median call may stand between two kinds of calls "
      "(`seconds_ci95`), all between is true.\n\n" +
      table("figure", figures) + "\nThe median step, by what disturbed the run:\n\n" +
      table("disturbed by", disturbances);
  return out;
}

}  // namespace ghostrank::fidelity
