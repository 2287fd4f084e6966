// The flags of `ghostrank bench`, and the job made from them.
//
// Threading: plain values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "emulator/control/control.h"
#include "profiles/job/job.h"
#include "profiles/load/load.h"
#include "tools/arguments.h"
#include "tools/verbs/bench/table.h"

namespace ghostrank {

struct BenchFlags {
  std::string what;  // a collective, or pairs, permutation, incast, bisection
  // As nccl-tests.
  std::optional<std::uint64_t> first_bytes, last_bytes;
  std::uint64_t factor = 1, increment = 1u << 20;
  std::optional<int> iterations, warmup;
  std::optional<int> threads, gpus;
  int aggregated = 1, cycles = 1;  // 0 cycles: until stopped
  int checks = 0;
  std::string type = "float", redop = "sum", root = "0";
  bool timestamps = false, per_iteration = false;
  bool apart = false;               // -z 3: iterations start on all ranks at once
  int skipped = 0;                  // leading iterations that per_iteration leaves out
  int timeout_s = 0;                // wall seconds per size; 0: none
  std::optional<double> imbalance;  // of all_gather_v and all_to_all_v
  std::optional<int> average;       // 0: rank 0, 1: mean, 2: least, 3: greatest over ranks
  // The emulated cluster.
  std::optional<int> ranks, gpus_per_node, nics_per_node, channels, max_channels;
  std::optional<double> latency_us;
  std::string cluster, nic_rate, library, algorithm, protocol, node, fabric, dilation;
  std::vector<std::string> overrides, plugins;
  std::optional<std::uint64_t> seed;
  // Output.
  std::string json, csv, svg;
  LogFlags log;
  bool quiet = false, allow_unfaithful = false, dry_run = false, print_config = false;
};

// GPUs per node, -t times -g; empty when neither was given.
std::optional<int> gpus_of_a_process(const BenchFlags& flags);

// The range of -b, -e, -f and -i; `standard` replaces a missing -b or -e.
SizeRange range_of(const BenchFlags& flags, const SizeRange& standard);

// The job to play: the cluster (with -t and -g one node per process, else --ranks ranks), the
// fabric, every other key, and the algorithm of a collective. run.iterations and run.warmup come
// from -n and -w, else from nccl-tests' defaults, except that virtual time has no warm-up because
// nothing warms up there. Several processes mean fabric ofi unless a flag names another; a pattern
// then runs as fast as the hosts can. Throws Error(usage).
LoadedJob bench_job(const BenchFlags& flags, std::optional<Func> func, int processes);

// `job` with what its keys do not say, so that processes which would play different calls find that
// out before the start: `what` is the collective or pattern, `split` the text of a Split.
LoadedJob with_calls(const LoadedJob& job, const BenchFlags& flags, const std::string& what,
                     const std::string& split);

// The lines above a table: ranks, nodes, NICs, processes and transport.
std::vector<std::string> bench_facts(const LoadedJob& job, const Result& started);

}  // namespace ghostrank
