// PyTorch's DistributedDataParallel over gloo, compared with ghostrank's plan of it on the same
// links.
//
// A run of PyTorch alone measures its own cost per layer (autograd, copies into buckets, late
// wake-ups), and ghostrank plays a profile with these times. So the comparison covers the
// communication and its overlap with compute.
#include "profiles/planners/ddp.h"

#include <fstream>
#include <functional>
#include <numeric>

#include "tests/fidelity/cases.h"
#include "tests/fidelity/gloo_bytes.h"
#include "tests/fidelity/timeline.h"

namespace ghostrank::fidelity {
namespace {

using testing::Lab;

// 24 MB of gradients in four buckets of three sizes; the backward overlaps with most of them.
SleepingModel model() {
  SleepingModel m{{}, 2000, 4};
  for (const int weights :
       {500'000, 500'000, 500'000, 1'500'000, 500'000, 500'000, 1'500'000, 500'000})
    m.layers.push_back({{weights, 1000}, 5000, 10000});
  return m;
}

double compute_seconds(const SleepingModel& m) {
  return std::accumulate(m.layers.begin(), m.layers.end(), m.optimizer_us,
                         [](double sum, const SleepingLayer& layer) {
                           return sum + layer.forward_us + layer.backward_us;
                         }) *
         1e-6;
}

double median_of(const json& steps, const std::function<double(const json&)>& pick) {
  std::vector<double> values;
  for (std::size_t i = 1; i < steps.size(); ++i) values.push_back(pick(steps[i]));
  return median(values);
}

// The profile with the layer times that PyTorch alone measured.
SleepingModel measured(const SleepingModel& nominal, const json& steps) {
  SleepingModel m = nominal;
  for (std::size_t i = 0; i < m.layers.size(); ++i) {
    m.layers[i].forward_us = 1e6 * median_of(steps, [i](const json& s) { return s["forward"][i]; });
    m.layers[i].backward_us =
        1e6 * median_of(steps, [i](const json& s) { return s["backward"][i]; });
  }
  m.optimizer_us = 1e6 * median_of(steps, [](const json& s) { return s["optimizer"]; });
  return m;
}

std::vector<Bucket> buckets_of(const SleepingModel& m) {
  Model described;
  for (const SleepingLayer& layer : m.layers) {
    Layer& l = described.layers.emplace_back();
    for (const int numel : layer.parameters)
      l.parameters.push_back({"", static_cast<std::uint64_t>(numel)});
  }
  return ddp_buckets(described, 4, 1 << 20,
                     static_cast<std::uint64_t>(m.bucket_cap_mb * (1 << 20)));
}

std::string write_job(Lab& lab, const SleepingModel& m, int nodes) {
  const json layers = to_json(m)["layers"];
  const json job{{"schema", "ghostrank/job/1"},
                 {"model",
                  {{"kind", "layers"},
                   {"name", "sleeps"},
                   {"layers", layers},
                   {"optimizer_us", m.optimizer_us}}},
                 {"cluster",
                  {{"nodes", nodes},
                   {"gpus_per_node", 1},
                   {"nics_per_node", 1},
                   {"nic", {{"rate", "unlimited"}, {"latency_us", kLatency_us}}}}},
                 {"parallel", {{"framework", "ddp"}, {"bucket_cap_mb", m.bucket_cap_mb}}},
                 {"collectives", {{"library", "gloo"}}},
                 {"scale", {{"dilation", 1}}},
                 {"fabric", {{"kind", "ofi"}}},
                 {"run", {{"iterations", 3}, {"warmup", 2}, {"probe_ms", 0}}}};
  std::ofstream(lab.file("ddp.yaml")) << job.dump(1);
  return lab.file("ddp.yaml");
}

std::vector<double> iterations_of(const json& result) {
  std::vector<double> times;
  for (const json& i : result["iterations"]) times.push_back(i["seconds"]);
  return times;
}

struct Case {
  Lab& lab;
  Workers& torch;
  std::string job;
  double rate;
};

// Compares the bytes of training steps and of single calls, as TCP counts them, with the schedules.
void compare_bytes(const Case& c, const SleepingModel& m, const json& played, Findings& out) {
  const int n = c.torch.size();
  const auto all_reduce = [&](std::uint64_t bytes) {
    return gloo_bytes({Func::all_reduce, n, bytes / 4, 4});
  };
  const auto sent = [&](const std::string& command) {
    Bytes before = payload_sent(c.lab, n);
    c.torch.ask(command);
    Bytes after = payload_sent(c.lab, n);
    add(after, before, -1);
    return after;
  };
  const auto expect = [&](const std::string& what, const Bytes& theirs, const Bytes& ours) {
    hold_bytes(out, what, ours, theirs);
  };
  Bytes step, data;
  for (const Bucket& bucket : buckets_of(m)) {
    add(step, all_reduce(bucket.bytes).payload);
    add(data, all_reduce(bucket.bytes).data);
  }
  expect("a training step, n=" + std::to_string(n), sent("steps 1"), step);
  for (const std::uint64_t bytes : {std::uint64_t{4000}, buckets_of(m)[1].bytes}) {
    Bytes call = gloo_bytes({Func::barrier, n}).payload;  // the worker's barrier before the call
    add(call, all_reduce(bytes).payload, 2);              // the call, and one that is not timed
    expect("all-reduce of " + std::to_string(bytes) + " bytes, n=" + std::to_string(n),
           sent("collective all_reduce " + std::to_string(bytes) + " 1 1"), call);
  }
  Bytes ledger;
  for (const json& pair : played["traffic"]["pairs"]) {
    const auto node = [](const std::string& nic) { return std::stoi(nic.substr(1)); };
    ledger[{node(pair["src"]), node(pair["dst"])}] += pair["bytes"].get<double>();
  }
  expect("ghostrank's ledger, n=" + std::to_string(n), ledger, data);
}

// Plays PyTorch and ghostrank in turns.
Row compare_steps(const Case& c, int pairs, json& played, Findings& out) {
  const int n = c.torch.size();
  c.lab.shape({c.rate, kBurst});
  std::vector<double> theirs, ours;
  bool faithful = true;
  for (int pair = 0; pair < pairs; ++pair) {
    const json steps = c.torch.ask("steps 4").front()["steps"];
    for (std::size_t i = 1; i < steps.size(); ++i) theirs.push_back(steps[i]["seconds"]);
    played = play(c.lab, n, "run " + c.job);
    for (const double s : iterations_of(played)) ours.push_back(s);
    faithful &= played["fidelity"]["faithful"].get<bool>();
  }
  const json modelled = play(c.lab, 1,
                             "run " + c.job + " -s fabric.kind=virtual -s cluster.nic.rate=" +
                                 std::to_string(c.rate * kGoodput * 1e-6) + "Mbps");
  const double torch = median(theirs), ghostrank = median(ours),
               virtual_time = median(iterations_of(modelled));
  const std::string what = "step time, n=" + std::to_string(n) + ", " + megabits(c.rate);
  const double most = c.rate > kSlow ? 0.05 : 0.03;
  return {std::to_string(n),
          megabits(c.rate),
          milliseconds(torch),
          milliseconds(ghostrank),
          percent(hold(out, what, ghostrank, torch, most)),
          milliseconds(virtual_time),
          percent(hold(out, what + ", virtual", virtual_time, torch, 0.03)),
          faithful ? "yes" : "no"};
}

void compare_group(Lab& lab, int n, const SleepingModel& nominal, const SleepingModel& real,
                   const Options& options, std::vector<Row>& rows, Findings& out) {
  lab.shape({kSlow, kBurst});
  Workers torch = torch_workers(lab, n, nominal);
  std::vector<std::uint64_t> sizes;
  for (const Bucket& bucket : buckets_of(nominal)) sizes.push_back(bucket.bytes);
  if (torch.hello()["buckets"].get<std::vector<std::uint64_t>>() != sizes)
    out.misses.push_back("bucket sizes differ: PyTorch has " + torch.hello()["buckets"].dump());
  const std::string job = write_job(lab, real, n);
  json played;
  for (const double rate : {kSlow, kFast}) {
    const Case c{lab, torch, job, rate};
    rows.push_back(compare_steps(c, options.quick ? 1 : 3, played, out));
    if (rate == kSlow) compare_bytes(c, nominal, played, out);
    if (rate == kSlow && n == 2)
      draw_timeline(
          lab, [&] { torch.ask("steps 3"); }, [&] { play(lab, n, "run " + job); },
          options.pictures + "/ddp-gloo.svg");
  }
}

}  // namespace

Findings compare_ddp(const Options& options) {
  Findings out;
  Lab lab;
  const SleepingModel nominal = model();
  json alone;
  std::string version;
  {
    Workers torch = torch_workers(lab, 1, nominal);
    version = torch.hello()["torch"];
    alone = torch.ask("steps 9").front()["steps"];
  }
  const SleepingModel real = measured(nominal, alone);
  std::vector<Row> rows{{"ranks", "links", "PyTorch", "ghostrank", "", "virtual", "", "faithful"}};
  for (const int n : {2, 4}) compare_group(lab, n, nominal, real, options, rows, out);
  std::string sizes;
  for (const Bucket& bucket : buckets_of(nominal))
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(bucket.bytes);
  out.markdown = "PyTorch " + version + ", median step. Compute is " +
                 milliseconds(compute_seconds(nominal)) +
                 " of sleeps; PyTorch's own cost, measured alone, adds " +
                 milliseconds(compute_seconds(real) - compute_seconds(nominal)) +
                 ", and is in the profile that ghostrank plays. Buckets: " + sizes + " bytes.\n\n" +
                 markdown_table(rows);
  return out;
}

}  // namespace ghostrank::fidelity
