// ghostrank bench: one collective over sizes, with nccl-tests' letters and columns, or a pattern of
// flows. bench/collective.cpp and bench/pattern.cpp play them.
#include <CLI/CLI.hpp>

#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "tools/verbs.h"
#include "tools/verbs/bench/gpu_flags.h"
#include "tools/verbs/bench/play.h"

namespace ghostrank {
namespace {

constexpr const char* kAsNcclTests = "As nccl-tests";

void add_size_flags(CLI::App& app, BenchFlags& f) {
  const auto size = [&](const std::string& name, auto& value, const char* what) {
    app.add_option_function<std::string>(
           name,
           [&value, name](const std::string& text) {
             const auto parsed = parse_size(text);
             if (!parsed)
               throw Error(name + ": '" + text + "' is no size; write 8, 4K, 128M or 8GiB");
             value = *parsed;
           },
           what)
        ->type_name("SIZE")
        ->group(kAsNcclTests);
  };
  size("-b,--minbytes", f.first_bytes, "first size (default 32M; patterns 1M)");
  size("-e,--maxbytes", f.last_bytes, "last size");
  size("-i,--stepbytes", f.increment, "added from size to size (default 1M)");
  app.add_option("-f,--stepfactor", f.factor, "times from size to size; over 1 it replaces -i")
      ->check(between(1, 1 << 20))
      ->group(kAsNcclTests);
}

void add_call_flags(CLI::App& app, BenchFlags& f) {
  const auto group = [](CLI::Option* option) { option->group(kAsNcclTests); };
  group(app.add_option("-d,--datatype", f.type, "int8, int32, half, float, bfloat16, ... or all")
            ->capture_default_str());
  group(app.add_option("-o,--op", f.redop,
                       "sum, prod, min, max, avg, mulsum or all: nccl chooses by it")
            ->capture_default_str());
  group(app.add_option("-r,--root", f.root, "where there is one; or all")->capture_default_str());
  group(app.add_option_function<std::string>(
               "--imbalance",
               [&f](const std::string& text) {
                 f.imbalance = parse_number(text);  // rejects nan
                 if (!f.imbalance || *f.imbalance < 0 || *f.imbalance > 1)
                   throw Error("--imbalance: '" + text + "' is no number from 0 to 1");
               },
               "all_gather_v, all_to_all_v: blocks differ by up to this share of their size "
               "(default 0.5), drawn from --seed")
            ->type_name("SHARE"));
  group(app.add_option("-t,--nthreads", f.threads, "threads of a process, each with -g GPUs")
            ->check(between(1, 1024)));
  group(app.add_option("-g,--ngpus", f.gpus,
                       "GPUs of a thread: with -t those of a node, one node per process")
            ->check(between(1, 1024)));
}

void add_measuring_flags(CLI::App& app, BenchFlags& f) {
  const auto group = [](CLI::Option* option) { option->group(kAsNcclTests); };
  group(app.add_option("-n,--iters", f.iterations,
                       "calls per size (default 20, fewer of a call with very many messages)")
            ->check(between(1, 1'000'000)));
  group(app.add_option("-w,--warmup_iters", f.warmup, "calls before them (default 1; virtual 0)")
            ->check(between(0, 1'000'000)));
  group(app.add_option("-c,--check", f.checks,
                       "calls with real data, checked element by element after the others")
            ->check(between(0, 1'000'000))
            ->capture_default_str());
  group(app.add_option("-m,--agg_iters", f.aggregated,
                       "calls of an iteration, one after the other; not with NCCL's libraries")
            ->check(between(1, 10'000)));
  group(app.add_option("-N,--run_cycles", f.cycles,
                       "times that all sizes are measured; 0: until stopped")
            ->check(between(0, 1'000'000)));
  group(app.add_option("-a,--average", f.average,
                       "time of 0: rank 0, 1: the mean over ranks, 2: the least, 3: the greatest "
                       "(default 1; 3 where there is a root: the call is over for ranks that only "
                       "send before others have their data)")
            ->check(between(0, 3)));
  group(app.add_option_function<std::string>(
               "-z,--blocking",
               [&f](const std::string& text) {
                 if (text == "1")
                   throw Error(
                       "--blocking 1: nccl-tests' time holds its CPUs' barriers there, which are "
                       "not modelled; use 3, which leaves them out");
                 if (text != "0" && text != "2" && text != "3")
                   throw Error("--blocking: '" + text + "' is none of 0, 2, 3");
                 f.apart = text == "3";
               },
               "3: a barrier between iterations, which is not counted; 0, 2: none (the default)")
            ->type_name("{0,2,3}"));
  group(app.add_option("-I,--per_iter_timing", f.per_iteration,
                       "1: least, greatest, 99th percentile and variation of the iterations, too")
            ->check(between(0, 1)));
  group(app.add_option("-K,--per_iter_skip", f.skipped, "leading iterations that -I leaves out")
            ->check(between(0, 1'000'000)));
  group(app.add_option("-S,--report_timestamps", f.timestamps, "1: the time of day in every row")
            ->check(between(0, 1)));
  group(app.add_option("-T,--timeout", f.timeout_s,
                       "a size may take so many seconds, or the run fails; 0: as long as it takes")
            ->check(between(0, 1'000'000)));
}

void add_cluster_flags(CLI::App& app, BenchFlags& f) {
  const auto option = [&](const char* name, auto& value, const char* what) {
    return app.add_option(name, value, what)->group("Cluster");
  };
  option("--ranks", f.ranks, "default 8, or one node per process")->check(between(1, 1 << 24));
  option("--fabric", f.fabric, "memory, ofi or virtual (default memory; several processes: ofi)");
  option("--library", f.library, "family of algorithms (default generic)");
  option("--algorithm", f.algorithm, "of the collective (default: the library's first)");
  option("--plugin", f.plugins, "shared object with algorithms of your own")->type_name("FILE");
  option("--protocol", f.protocol, "nccl: Simple, LL or LL128");
  option("--channels", f.channels, "channels that the data is split over");
  option("--max-channels", f.max_channels, "nccl: at most so many of them");
  option("--node", f.node, "nccl: kind of node, such as hgx-h100-400g");
  option("--cluster", f.cluster, "cluster profile: a name in profiles/clusters or a file");
  option("--gpus-per-node", f.gpus_per_node, "default 1")->check(between(1, 1024));
  option("--nics-per-node", f.nics_per_node, "default: as many as GPUs")->check(between(1, 1024));
  option("--nic-rate", f.nic_rate, "as 400Gbps; 0: unlimited");
  app.add_option_function<std::string>(
         "--latency",
         [&f](const std::string& text) {
           f.latency_us = parse_number(text);
           if (!f.latency_us || *f.latency_us < 0 || *f.latency_us > 1e9)
             throw Error("--latency: '" + text + "' is no number from 0 to 1000000000");
         },
         "one way between nodes, in microseconds")
      ->type_name("NUMBER")
      ->group("Cluster");
  option("--dilation", f.dilation, "how much slower than real time (default auto, size by size)");
  option("-s,--set", f.overrides, "any other key of a job: -s run.shards=2; repeatable")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
  add_seed(app, f.seed, "seed of all random draws")->group("Cluster");
}

// A pattern has no type and no algorithm, so these flags would be ignored: refuse them.
void check_pattern_flags(const CLI::App& app) {
  for (const char* name : {"--datatype", "--op", "--root", "--imbalance", "--check", "--agg_iters",
                           "--run_cycles", "--blocking", "--average", "--per_iter_timing",
                           "--per_iter_skip", "--report_timestamps", "--timeout", "--library",
                           "--algorithm", "--protocol", "--channels", "--max-channels", "--node"}) {
    if (app.count(name) > 0)
      throw Error(std::string(name) + " belongs to collectives; leave it out");
  }
}

bool read_flags(const Argv& argv, BenchFlags& f) {
  CLI::App app("Measure one collective over sizes, or a pattern of flows.", "ghostrank bench");
  app.add_option("collective", f.what,
                 "all_reduce, all_gather_perf, alltoall, ... or pairs, permutation, incast, "
                 "bisection")
      ->required()
      ->type_name("COLLECTIVE|PATTERN");
  add_size_flags(app, f);
  add_call_flags(app, f);
  add_measuring_flags(app, f);
  add_gpu_flags(app);
  add_cluster_flags(app, f);
  const auto file = [&](const char* name, std::string& path, const char* what) {
    app.add_option(name, path, what)->type_name("FILE|-")->group("Output");
  };
  file("-J,--json,--output_file", f.json, "collectives: nccl-tests' JSON; - is stdout");
  file("--csv", f.csv, "one line per row; - is stdout");
  file("--svg", f.svg, "patterns: a picture");
  add_log_flags(app, f.log);
  app.add_flag("-q,--quiet", f.quiet, "no table, no progress")->group("Output");
  app.add_flag("--print-config", f.print_config, "print every key and its origin; do not play");
  app.add_flag("--dry-run", f.dry_run, "say what would be sent; do not play");
  app.add_flag("--allow-unfaithful", f.allow_unfaithful,
               "exit 0 although the machine could not keep up");
  app.footer(
      "Examples:\n"
      "  ghostrank bench all_reduce -b 8 -e 128M -f 2 --ranks 16\n"
      "  ghostrank bench alltoall --ranks 4096 --algorithm bruck --fabric virtual -b 64M -e 64M\n"
      "  ghostrank bench all_reduce_perf --library nccl-2.30 --ranks 32 --gpus-per-node 8 -c 1\n"
      "  ghostrank bench pairs --ranks 16 --fabric virtual --svg pairs.svg\n"
      "  RANK=0 WORLD_SIZE=4 MASTER_ADDR=10.0.0.1 MASTER_PORT=29500 ghostrank bench pairs\n\n"
      "Exit status: 0 ok; 1 failed, wrong or not faithful; 2 usage; 3 environment; 129, 130,\n"
      "143, 152 stopped by a signal.");
  if (!parse(app, argv)) return false;
  if (is_pattern(f.what)) check_pattern_flags(app);
  for (const char* flag : {"--dry-run", "--print-config"})
    refuse_beside(app, flag, {"--json", "--csv", "--svg", "--log-file"});
  return true;
}

}  // namespace

int verb_bench(const Argv& argv) {
  BenchFlags flags;
  if (!read_flags(argv, flags)) return 0;
  if (is_pattern(flags.what)) return bench_pattern(flags, world_from_environment());
  return bench_collective(argv, flags, bench_func(flags.what), world_from_environment());
}

}  // namespace ghostrank
