// See capture.h; the records and the profile are profiles/capture's.
#include "tools/verbs/profile/capture.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "profiles/capture/gradients.h"
#include "profiles/capture/hooks_folder.h"
#include "profiles/capture/merge.h"
#include "profiles/capture/profile_text.h"
#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "profiles/median.h"
#include "profiles/workload/traffic_pattern.h"
#include "tools/quiet_play.h"
#include "tools/report/files/output_files.h"
#include "tools/report/files/temporary_file.h"
#include "tools/text/humane.h"

namespace ghostrank {
namespace {

struct CaptureFlags {
  std::string out = "run.profile.yaml", records, name, merge, gradients, layers = kLayersByModule;
  std::vector<std::string> command;
  int block = 5, gradient_block = 256, ranks = 0;
  bool plain = false;
};

double seconds_of(Nanos nanos) { return static_cast<double>(nanos) * 1e-9; }

// Runs the command with the hooks on its path. Its input and output are ours, but a profile that
// goes to stdout has that for itself.
void run_hooked(const CaptureFlags& flags, const std::string& records, const char* mode) {
  const char* path = std::getenv("PYTHONPATH");
  const std::string paths =
      capture_hooks_folder() + (path && *path ? ":" + std::string(path) : std::string());
  std::vector<std::string> words = flags.command;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid < 0)
    throw Error(std::string("cannot start the command: ") + std::strerror(errno),
                ErrorKind::environment);
  if (pid == 0) {
    setenv("PYTHONPATH", paths.c_str(), 1);
    setenv("GHOSTRANK_CAPTURE", records.c_str(), 1);
    setenv("GHOSTRANK_CAPTURE_MODE", mode, 1);
    setenv("GHOSTRANK_CAPTURE_LAYERS", flags.layers.c_str(), 1);
    setenv("GHOSTRANK_CAPTURE_BLOCK", std::to_string(flags.block).c_str(), 1);
    setenv("GHOSTRANK_CAPTURE_GRADIENTS",
           std::to_string(flags.gradients.empty() ? 0 : flags.gradient_block).c_str(), 1);
    if (flags.ranks > 0) {
      const std::string ranks = std::to_string(flags.ranks);
      setenv("GHOSTRANK_CAPTURE_RANKS", ranks.c_str(), 1);
      setenv("WORLD_SIZE", ranks.c_str(), 1);
      setenv("RANK", "0", 1);
      setenv("LOCAL_RANK", "0", 1);
    }
    if (flags.out == "-")
      dup2(STDERR_FILENO, STDOUT_FILENO);  // what the script prints is no profile
    execvp(argv[0], argv.data());
    std::fprintf(stderr, "ghostrank: cannot start %s: %s\n", argv[0], std::strerror(errno));
    _exit(127);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  const std::string how = WIFEXITED(status) ? "with status " + std::to_string(WEXITSTATUS(status))
                                            : "by signal " + std::to_string(WTERMSIG(status));
  throw Error("the command ended " + how + "; nothing was written", ErrorKind::environment);
}

// Seconds of one call between the captured ranks, each on a machine of its own, as it is emulated.
double emulated_call(const Captured& captured, const CollectivePhases& phases, double rate_bps,
                     double latency_us) {
  char base[256];
  std::snprintf(base, sizeof base,
                "{cluster: {nodes: %d, gpus_per_node: 1, nics_per_node: 1, "
                "nic: {rate: %s, latency_us: %.6g}}, collectives: {library: %s}, "
                "fabric: {kind: virtual}, run: {warmup: 1, iterations: 2}}",
                captured.ranks, measured_rate_text(rate_bps).c_str(), latency_us,
                library_of(captured.backend).c_str());
  const Result result = play_quietly(load_cluster_job(base, {}), collective_phases(phases));
  if (result.iterations.empty()) throw Error("the emulated call has no time");
  return result.iterations.back().seconds;
}

CollectivePhases one_call(const Captured& captured, Func func, DataType type, std::uint64_t count) {
  CollectivePhases phases;
  phases.func = func;
  phases.ranks = captured.ranks;
  phases.calls = {{count, type, 0}};
  return phases;
}

// The rate and the latency at which the library's schedule takes as long as the run's calls did.
CaptureNetwork network_of(const Captured& captured, const CallCost& cost) {
  constexpr double kRate = 1e9, kLatency = 100;
  CaptureNetwork out;
  if (captured.ranks < 2 || captured.backend == kFakeGroup || cost.per_byte <= 0) return out;
  std::vector<Nanos> sizes;
  for (const auto& step : captured.reductions)
    for (const CaptureReduction& one : step) sizes.push_back(static_cast<Nanos>(one.bytes));
  const auto bytes = static_cast<std::uint64_t>(std::max<Nanos>(4, median(sizes)));
  const double size = static_cast<double>(bytes);
  const CollectivePhases call = one_call(captured, Func::all_reduce, DataType::float32,
                                         std::max<std::uint64_t>(1, bytes / 4));
  out.rate_bps = kRate * emulated_call(captured, call, kRate, 0) / (cost.per_byte * size);
  if (!cost.per_call_known || cost.per_call <= 0) return out;
  const double without = emulated_call(captured, call, out.rate_bps, 0);
  const double with = emulated_call(captured, call, out.rate_bps, kLatency);
  const double missing = cost.per_call + cost.per_byte * size - without;
  if (with > without) out.latency_us = std::max(0.0, missing * kLatency / (with - without));
  return out;
}

// Time of the broadcasts of rank 0's buffers, one after the other, as planners/ddp.cpp plays them.
Nanos emulated_broadcasts(const Captured& captured, const CaptureNetwork& network) {
  if (network.rate_bps <= 0) return 0;
  double seconds = 0;
  for (const auto& [type, count] : {std::pair{DataType::float32, captured.float_buffers},
                                    std::pair{DataType::int64, captured.integer_buffers}})
    if (count > 0)
      seconds += emulated_call(captured, one_call(captured, Func::broadcast, type, count),
                               network.rate_bps, network.latency_us);
  return std::llround(seconds * 1e9);
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %%", 100 * share);
  return text;
}

// "longer by 1.20 %", "shorter by 0.30 %"
std::string longer_by(double share) {
  return (share < 0 ? "shorter by " : "longer by ") + percent(std::abs(share));
}

double change(Nanos from, Nanos to) {
  return from > 0 ? static_cast<double>(to) / static_cast<double>(from) - 1 : 0;
}

// The standard error of change(median of `from`, median of `to`).
double change_error(const std::vector<Nanos>& from, const std::vector<Nanos>& to) {
  const auto middle = static_cast<double>(median(from));
  if (middle <= 0) return 0;
  return std::hypot(median_error(from, from.size()), median_error(to, to.size())) / middle;
}

std::vector<std::string> facts_of(const Captured& captured, const CaptureNetwork& network,
                                  const CallCost& cost, const std::vector<Nanos>& plain) {
  std::vector<std::string> out;
  out.push_back(captured.model + ": " + std::to_string(captured.layers.size()) + " layers, " +
                std::to_string(captured.buckets.size()) + " buckets, " +
                std::to_string(captured.ranks) + " ranks, torch " + captured.torch + ", " +
                captured.backend);
  if (!captured.device_name.empty())
    out.push_back("measured: times of the device (" + captured.device_name + "), by CUDA events");
  const Nanos on = median(captured.step), off = median(captured.held_out);
  out.push_back(std::to_string(captured.step.size()) + " steps recorded, median " +
                humane_seconds(seconds_of(on)) + "; " + std::to_string(captured.held_out.size()) +
                " held out, median " + humane_seconds(seconds_of(off)));
  if (off > 0)
    out.push_back("measured: hooks make a step " + longer_by(change(off, on)) +
                  ", standard error " + percent(change_error(captured.held_out, captured.step)) +
                  " (on and off in turns, in one run)");
  if (!plain.empty())
    out.push_back("measured: the hooked run's steps are " +
                  longer_by(change(median(plain), off > 0 ? off : on)) +
                  " than those of a run without any hook (median " +
                  humane_seconds(seconds_of(median(plain))) + ")");
  if (network.rate_bps > 0)
    out.push_back(
        "measured: all-reduces at " + humane_bits(network.rate_bps) + " and " +
        humane_seconds(network.latency_us * 1e-6) + " one way, by " + library_of(captured.backend) +
        "'s schedule" +
        (cost.per_call_known ? "" : "; start-up, which cannot be told apart, is in the rate"));
  if (captured.data > 0)
    out.push_back("measured: " + humane_seconds(seconds_of(captured.data)) +
                  " of a step in the data loader (in before_us)");
  if (captured.clock_error > 0)
    out.push_back("clocks of machines are aligned within " +
                  humane_seconds(seconds_of(captured.clock_error)));
  if (captured.backend == kFakeGroup)
    out.push_back(
        "measured: one rank, whose all-reduces ended at once; assumed: the others compute " +
        std::string("as it does; unknown: the network, which the job gives (cluster.nic)"));
  else
    out.push_back("assumed: every rank has a NIC of its own");
  for (const auto& [what, count] : captured.left_out)
    out.push_back("left out: " + what + " (" + std::to_string(count) + ")");
  return out;
}

constexpr const char* kMagnitudes = ".magnitudes.csv";
constexpr const char* kMagnitudesByTensor = ".tensors.csv";
constexpr const char* kOverlap = ".overlap.yaml";
constexpr const char* kOverlapByTensor = ".tensors.yaml";

void write_gradients(const std::string& prefix, const std::vector<CapturedRank>& ranks,
                     const std::vector<CaptureLayer>& layers) {
  write_whole(prefix + kMagnitudes, gradient_magnitudes(ranks));
  write_whole(prefix + kMagnitudesByTensor, tensor_magnitudes(ranks, layers));
  write_whole(prefix + kOverlap, gradient_overlap(ranks));
  write_whole(prefix + kOverlapByTensor, tensor_overlaps(ranks, layers));
  const GradientFacts facts = gradient_facts(ranks);
  if (const std::uint64_t odd = ranks.front().gradients.not_finite; odd > 0)
    std::fprintf(stderr, "left out: gradients that are infinite or not a number (%llu buckets)\n",
                 static_cast<unsigned long long>(odd));
  std::fprintf(stderr,
               "measured: %.3g %% of the gradients' elements are zero, and %.3g %% of their blocks "
               "of %llu\n"
               "wrote %s%s and, tensor by tensor, %s (tensors.distribution: measured FILE), and "
               "%s and %s (tensors.overlap)\n",
               100 * facts.zeros, 100 * (1 - facts.density),
               static_cast<unsigned long long>(facts.block), prefix.c_str(), kMagnitudes,
               kMagnitudesByTensor, kOverlap, kOverlapByTensor);
}

void write_profile(const CaptureFlags& flags, const std::string& records,
                   const std::vector<Nanos>& plain) {
  const std::vector<CapturedRank> ranks = read_capture(records);
  Captured captured = merge_capture(ranks);
  const CallCost cost = call_cost(captured.reductions);
  const CaptureNetwork network = network_of(captured, cost);
  const Nanos buffers = add_work_on_buffers(captured, emulated_broadcasts(captured, network));
  // Without a network, as of one process, a job plays all-reduces that take no time.
  const Nanos reductions =
      add_work_on_reductions(captured, network.rate_bps > 0 ? cost : CallCost{});
  auto facts = facts_of(captured, network, cost, plain);
  if (buffers > 0)
    facts.push_back("measured: " + humane_seconds(seconds_of(buffers)) +
                    " of a step in work on buffers beside their broadcast (in before_us)");
  if (reductions > 0)
    facts.push_back("measured: " + humane_seconds(seconds_of(reductions)) +
                    " of a step in which hosts held up its last all-reduces (in after_us)");
  std::vector<std::string> comments{
      "Written by 'ghostrank profile capture'; for `model` or `trace` of a job."};
  comments.insert(comments.end(), facts.begin(), facts.end());
  write_whole(flags.out,
              capture_profile(captured, network, flags.name.empty() ? captured.model : flags.name,
                              comments));
  if (!flags.gradients.empty()) write_gradients(flags.gradients, ranks, captured.layers);
  if (flags.out == "-") return;
  for (const std::string& fact : facts) std::printf("%s\n", fact.c_str());
  std::printf("wrote %s; next: ghostrank profile check %s\n", flags.out.c_str(), flags.out.c_str());
}

}  // namespace

int profile_capture(const Argv& argv) {
  CaptureFlags flags;
  CLI::App app(
      "Run a training script, unchanged, and write what it did as a profile: PyTorch's "
      "DistributedDataParallel, on CPUs over gloo or on GPUs over NCCL.",
      "ghostrank profile capture");
  app.add_option("command", flags.command, "the script with its launcher, behind --")
      ->type_name("COMMAND...");
  app.add_option("-o", flags.out, "the profile, for `model` or `trace` of a job; - is stdout")
      ->type_name("FILE|-")
      ->capture_default_str();
  app.add_option("--name", flags.name, "of the model; default: its class");
  app.add_option("--records", flags.records, "keep what each rank wrote here")->type_name("DIR");
  app.add_option("--merge", flags.merge,
                 "run nothing: make the profile of records that are there, as of several machines")
      ->type_name("DIR");
  app.add_option(
         "--ranks", flags.ranks,
         "run one process as rank 0 of so many, without the others: collectives end at once, "
         "as in PyTorch's fake process group (PyTorch 2)")
      ->type_name("N")
      ->check(between(2, 65'536));
  app.add_option("--layers", flags.layers,
                 "of the profile: modules, or DDP's buckets, which costs the run next to nothing")
      ->check(one_of({kLayersByModule, kLayersByBucket}))
      ->capture_default_str();
  app.add_option("--block", flags.block, "steps with hooks, then as many without")
      ->check(between(2, 100'000))
      ->capture_default_str();
  app.add_option("--gradients", flags.gradients,
                 "look at the gradients of the steps in which hooks change, and write PREFIX" +
                     std::string(kMagnitudes) + " and PREFIX" + kMagnitudesByTensor +
                     " for tensors.distribution, PREFIX" + kOverlap + " and PREFIX" +
                     kOverlapByTensor + " for tensors.overlap")
      ->type_name("PREFIX");
  app.add_option("--gradient-block", flags.gradient_block,
                 "elements of a block of gradients, as tensors.block")
      ->check(between(1, 1'000'000))
      ->capture_default_str();
  app.add_flag("--plain-run", flags.plain,
               "run the script once more before, without hooks, and say what all of them cost");
  app.footer(
      "Examples:\n"
      "  ghostrank profile capture -- torchrun --nproc_per_node 2 train.py\n"
      "  RANK=1 WORLD_SIZE=2 ghostrank profile capture --records shared/ -- python3 train.py\n"
      "  ghostrank profile capture --merge shared/ -o run.profile.yaml");
  if (!parse(app, argv)) return 0;
  if (flags.command.empty() == flags.merge.empty())
    throw Error("which script? write it behind --, or --merge DIR");
  std::vector<Output> outputs{{"-o", flags.out}};
  if (!flags.gradients.empty())
    for (const char* end : {kMagnitudes, kMagnitudesByTensor, kOverlap, kOverlapByTensor})
      outputs.push_back({"--gradients", flags.gradients + end});
  check_outputs(outputs);
  if (!flags.merge.empty()) {
    write_profile(flags, flags.merge, {});
    return 0;
  }
  // Other machines' processes write here only when this one's have joined them.
  if (const auto before = capture_files(flags.records); !before.empty())
    throw Error("--records: " + before.front() +
                " is of another run; give an empty folder, or make a profile of it with --merge");
  const TemporaryFolder folder;
  std::vector<Nanos> plain;
  if (flags.plain) {
    run_hooked(flags, folder.file("plain"), "plain");
    plain = plain_steps(read_capture(folder.file("plain")));
  }
  const std::string records = flags.records.empty()
                                  ? folder.file("records")
                                  : std::filesystem::absolute(flags.records).string();
  run_hooked(flags, records, "hooks");
  write_profile(flags, records, plain);
  return 0;
}

}  // namespace ghostrank
