// Whether `scale.dilation: auto` ends faithful at the first try, near the least dilation that is:
// jobs of the zoo and random ones, for each of which the least is found by bisection. There a
// dilation is faithful if a run is, clearly, or most of three are: one may meet a slow moment.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <random>
#include <sstream>

#include "tests/fidelity/cases.h"
#include "tests/fidelity/cases/local.h"
#include "tests/one_of.h"

namespace ghostrank::fidelity {
namespace {

using test::one_of;

constexpr double kMostAbove = 1.5;   // the dilation that auto takes, as a multiple of the least
constexpr double kResolution = 1.1;  // of the bisection
constexpr double kMostDilation = 4096;
constexpr double kLimit = 0.01;  // of lateness on the critical path, to be faithful
constexpr unsigned kJobs = 30;

struct ZooJob {
  const char* name;
  const char* rest;  // of the job file
};

// The first one has 16 million messages inside nodes in the backward pass.
constexpr ZooJob kZoo[] = {
    {"gpt2-xl, 64 ranks",
     "model: gpt2-xl\ndevice: a100-sxm-80gb\n"
     "cluster: {nodes: 8, gpus_per_node: 8, nics_per_node: 8, nic: {rate: 200Gbps, latency_us: "
     "2}}\n"
     "parallel: {framework: ddp}\ncollectives: {library: nccl-2.28, allreduce: ring}\n"
     "run: {warmup: 1, iterations: 3}\n"},
    {"resnet50, 8 ranks",
     "model: resnet50\ndevice: a100-sxm-80gb\n"
     "cluster: {nodes: 2, gpus_per_node: 4, nics_per_node: 1, nic: {rate: 100Gbps, latency_us: "
     "2}}\n"
     "parallel: {framework: ddp, micro_batch: 64}\ncollectives: {allreduce: ring}\n"
     "run: {warmup: 1, iterations: 6}\n"},
    {"vgg16, 16 ranks",
     "model: vgg16\ndevice: v100-sxm2\n"
     "cluster: {nodes: 4, gpus_per_node: 4, nics_per_node: 1, nic: {rate: 100Gbps, latency_us: "
     "5}}\n"
     "parallel: {framework: ddp, micro_batch: 32}\ncollectives: {library: nccl-2.28}\n"
     "run: {warmup: 1, iterations: 4}\n"},
    {"bert-base, 16 ranks",
     "model: bert-base\ndevice: a100-sxm-80gb\n"
     "cluster: {nodes: 4, gpus_per_node: 4, nics_per_node: 4, nic: {rate: 200Gbps, latency_us: "
     "2}}\n"
     "parallel: {framework: ddp, micro_batch: 8}\ncollectives: {library: nccl-2.28}\n"
     "run: {warmup: 1, iterations: 6}\n"},
    {"bert-large, 8 ranks over gloo",
     "model: bert-large\ndevice: a100-sxm-80gb\n"
     "cluster: {nodes: 8, gpus_per_node: 1, nics_per_node: 1, nic: {rate: 100Gbps, latency_us: "
     "10}}\n"
     "parallel: {framework: ddp, micro_batch: 4}\ncollectives: {library: gloo}\n"
     "run: {warmup: 1, iterations: 4}\n"},
    {"gpt2, 32 ranks, ZeRO-1",
     "model: gpt2\ndevice: h100-sxm\n"
     "cluster: {nodes: 4, gpus_per_node: 8, nics_per_node: 8, nic: {rate: 400Gbps, latency_us: "
     "2}}\n"
     "parallel: {framework: zero1, micro_batch: 8}\ncollectives: {library: nccl-2.28}\n"
     "run: {warmup: 1, iterations: 6}\n"},
    {"gpt2-medium, 16 ranks, FSDP",
     "model: gpt2-medium\ndevice: h100-sxm\n"
     "cluster: {nodes: 2, gpus_per_node: 8, nics_per_node: 8, nic: {rate: 400Gbps, latency_us: "
     "2}}\n"
     "parallel: {framework: fsdp, micro_batch: 4}\ncollectives: {library: nccl-2.28}\n"
     "run: {warmup: 1, iterations: 4}\n"},
    {"gpt2-large, 16 ranks, textbook rings",
     "model: gpt2-large\ndevice: a100-sxm-80gb\n"
     "cluster: {nodes: 4, gpus_per_node: 4, nics_per_node: 1, nic: {rate: 100Gbps, latency_us: "
     "5}}\n"
     "parallel: {framework: ddp, micro_batch: 2}\ncollectives: {library: generic, allreduce: "
     "ring}\n"
     "run: {warmup: 1, iterations: 3}\n"},
    {"gpt3-2.7b, 16 ranks, tensor and pipeline parallel",
     "model: {base: gpt3-2.7b, name: cut, layers: 8}\ndevice: h100-sxm\n"
     "cluster: {nodes: 4, gpus_per_node: 4, nics_per_node: 4, nic: {rate: 200Gbps, latency_us: "
     "2}}\n"
     "parallel: {framework: megatron, tp: 4, pp: 2, dp: 2, micro_batch: 1, global_batch: 8}\n"
     "collectives: {library: nccl-2.28}\nrun: {warmup: 1, iterations: 6}\n"},
    {"llama3.2-1b, 8 ranks, FSDP",
     "model: llama3.2-1b\ndevice: h100-sxm\n"
     "cluster: {nodes: 2, gpus_per_node: 4, nics_per_node: 4, nic: {rate: 400Gbps, latency_us: "
     "2}}\n"
     "parallel: {framework: fsdp, micro_batch: 1}\ncollectives: {library: nccl-2.28}\n"
     "run: {warmup: 1, iterations: 3}\n"},
};

struct Job {
  std::string name, text;
};

Job random_job(unsigned seed) {
  std::mt19937 random(seed);
  const int nodes = one_of(random, {2, 4, 8}), gpus = one_of(random, {1, 2, 4, 8});
  const int layers = one_of(random, {2, 6, 12});
  const double forward = one_of(random, {100, 500, 2000});
  const std::string framework = one_of<const char*>(random, {"ddp", "fsdp", "zero1"});
  const std::string library = framework == "ddp"
                                  ? one_of<const char*>(random, {"nccl-2.28", "generic", "gloo"})
                                  : one_of<const char*>(random, {"nccl-2.28", "generic"});
  std::ostringstream job;
  job << "model: {kind: layers, name: random, layers: [\n";
  for (int l = 0; l < layers; ++l)
    job << "  {parameters: [" << one_of(random, {10'000, 500'000, 4'000'000})
        << "], forward_us: " << forward << ", backward_us: " << 2 * forward << "}"
        << (l + 1 < layers ? ",\n" : "");
  job << "], optimizer_us: 200}\ncluster: {nodes: " << nodes << ", gpus_per_node: " << gpus
      << ", nics_per_node: " << one_of(random, {1, gpus})
      << ", nic: {rate: " << one_of<const char*>(random, {"25Gbps", "100Gbps", "400Gbps"})
      << ", latency_us: " << one_of(random, {1, 5}) << "}}\n"
      << "parallel: {framework: " << framework << "}\ncollectives: {library: " << library << "}\n"
      << "run: {warmup: 1, iterations: " << one_of(random, {3, 8, 20}) << "}\n";
  return {"random " + std::to_string(seed) + ": " + std::to_string(nodes * gpus) + " ranks, " +
              framework + ", " + library,
          job.str()};
}

std::vector<Job> jobs(unsigned count) {
  std::vector<Job> all;
  for (const ZooJob& zoo : kZoo) all.push_back({zoo.name, zoo.rest});
  for (unsigned seed = 1; all.size() < count; ++seed) all.push_back(random_job(seed));
  all.resize(count);
  return all;
}

double rounded(double dilation) { return std::round(dilation * 100) / 100; }

std::string number(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

// The least dilation at which the job is faithful, within kResolution; 0: none up to kMostDilation.
// `above`: one that is faithful, or 0.
double least_faithful(const Folder& folder, const std::string& file, double above, double begin) {
  const auto faithful = [&](double dilation) {
    int yes = 0, no = 0;
    while (yes < 2 && no < 2) {
      const json played = play_here(folder, 1, {file, "-s", "scale.dilation=" + number(dilation)});
      const double lateness = played["fidelity"]["critical_lateness"];
      const bool clear = lateness < kLimit / 2 || lateness > 2 * kLimit;
      (played["fidelity"]["faithful"].get<bool>() ? yes : no) += clear ? 2 : 1;
    }
    return yes >= 2;
  };
  double below = 0;
  for (double up = begin; above == 0; up = 2 * up) {
    if (up > kMostDilation) return 0;
    (faithful(up) ? above : below) = up;
  }
  if (below == 0 && (above <= 1 || faithful(1))) return 1;
  below = std::max(below, 1.0);
  while (above > kResolution * below) {
    const double middle = rounded(std::sqrt(below * above));
    (faithful(middle) ? above : below) = middle;
  }
  return above;
}

}  // namespace

Findings search_dilations(const Options& options) {
  Findings out;
  const Folder folder;
  std::vector<Row> rows{
      {"job", "step", "took", "least faithful", "ratio", "faithful", "measured", "looked for"}};
  unsigned faithful = 0, near = 0, count = 0;
  for (const Job& job : jobs(options.quick ? 3 : kJobs)) {
    if (job.name.find(options.row) == std::string::npos) continue;
    const std::string file = folder.file("job.yaml");
    std::ofstream(file) << "schema: ghostrank/job/1\n" << job.text << "fabric: {kind: memory}\n";
    const json chosen = play_here(folder, 1, {file});
    const double dilation = chosen["dilation"];
    const bool kept_up = chosen["fidelity"]["faithful"];
    const double least = least_faithful(folder, file, kept_up ? dilation : 0, 2 * dilation);
    const double ratio = least > 0 ? dilation / least : 0;
    ++count;
    faithful += kept_up;
    near += kept_up && ratio <= kMostAbove;
    if (!kept_up)
      out.misses.push_back(job.name + ": not faithful at dilation " + number(dilation) + ": " +
                           chosen["fidelity"]["reason"].get<std::string>());
    else if (ratio > kMostAbove)
      out.misses.push_back(job.name + ": dilation " + number(dilation) + ", least " +
                           number(least));
    const auto again = std::count_if(
        chosen["notes"].begin(), chosen["notes"].end(),
        [](const json& note) { return note.get<std::string>().starts_with("measured again"); });
    char text[2][32];
    std::snprintf(text[0], sizeof text[0], "%.2f", ratio);
    std::snprintf(text[1], sizeof text[1], "%.0f s", chosen["wall_seconds"].get<double>());
    rows.push_back({job.name, milliseconds(chosen["step_time"]["median"]), number(dilation),
                    number(least), text[0], kept_up ? "yes" : "no",
                    again == 0 ? "once" : std::to_string(again + 1) + " times", text[1]});
    std::fprintf(stderr, "%s\n", markdown_line(rows.back()).c_str());
  }
  out.markdown = "Memory, one process. " + std::to_string(faithful) + " of " +
                 std::to_string(count) + " jobs were faithful at the first try, " +
                 std::to_string(near) +
                 " of them at no more than 1.5 times the least faithful dilation, which bisection "
                 "finds within a tenth, by most of three runs where lateness is near the limit. "
                 "The last column is the whole run "
                 "with its warm-ups.\n\n" +
                 markdown_table(rows);
  return out;
}

}  // namespace ghostrank::fidelity
