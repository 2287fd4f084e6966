// What the user asked `ghostrank bench` for, and the job that follows.
//
// Threading: plain values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "emulator/control/control.h"
#include "profiles/job/job.h"
#include "profiles/load/load.h"
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
  int skipped = 0;                  // of per_iteration
  int timeout_s = 0;                // of one size, on the wall's clock; 0: none
  std::optional<double> imbalance;  // of the v-variants
  std::optional<int> average;       // time of rank 0, mean, least, greatest over ranks
  // The emulated cluster.
  std::optional<int> ranks, gpus_per_node, nics_per_node, channels, max_channels;
  std::optional<double> latency_us;
  std::string cluster, nic_rate, library, algorithm, protocol, node, fabric, dilation;
  std::vector<std::string> overrides, plugins;
  std::optional<std::uint64_t> seed;
  // What comes out.
  std::string json, csv, svg;
  bool quiet = false, allow_unfaithful = false, dry_run = false, print_config = false;
};

// GPUs of a node by -t and -g, which multiply; none: neither was given.
std::optional<int> gpus_of_a_process(const BenchFlags& flags);

// -b, -e, -f, -i; without -b and -e those of `standard`.
SizeRange range_of(const BenchFlags& flags, const SizeRange& standard);

// The cluster with --ranks on it (-t and -g: so many in one node per process), the fabric, and
// everything else a job says; of a collective, its algorithm too. run.iterations and run.warmup are
// -n and -w or nccl-tests' own, but without a warm-up in virtual time, where nothing warms up.
// Several processes mean fabric ofi unless the flags say otherwise, and a pattern runs there as
// fast as the hosts can. Throws Error(usage).
LoadedJob bench_job(const BenchFlags& flags, std::optional<Func> func, int processes);

// The lines that say what is played on what: for people, above a table.
std::vector<std::string> bench_facts(const LoadedJob& job, const Result& started);

}  // namespace ghostrank
