// See bench/flags.h.
#include "tools/verbs/bench/flags.h"

#include <algorithm>
#include <map>
#include <set>

#include "profiles/error.h"
#include "profiles/input/yaml.h"
#include "profiles/load/config.h"
#include "profiles/load/load.h"
#include "profiles/load/sections/run.h"
#include "tools/text/humane.h"

namespace ghostrank {
namespace {

constexpr int kFewestRanks = 8;
constexpr int kIterations = 20, kWarmup = 1;  // the defaults of nccl-tests

// One GPU and one NIC per node, because the network between nodes is measured.
constexpr const char* kStandard = "cluster: {gpus_per_node: 1, nics_per_node: 1}";

// Overrides in order (later ones win), and the flag that set each key.
struct Overrides {
  std::vector<std::string> texts;
  std::map<std::string, std::string> origins;

  void add(const std::string& path, const std::string& value, const std::string& origin) {
    if (value.empty()) return;
    texts.push_back(path + "=" + value);
    origins[path] = origin;
  }
  template <typename Number>
  void add(const std::string& path, const std::optional<Number>& value, const std::string& origin) {
    if (value) add(path, std::to_string(*value), origin);
  }

  // The flag that was typed for what an error begins with, and the rest of the error; empty: none.
  std::optional<std::string> as_typed(const std::string& text) const {
    for (const std::string& override : texts) {
      const auto typed = origins.find(override.substr(0, override.find('=')));
      const std::string before = "-s " + quote(override);
      if (typed == origins.end() || !typed->second.starts_with("-") || !text.starts_with(before))
        continue;
      return typed->second + text.substr(before.size());
    }
    return std::nullopt;
  }

  // Names the flag that was typed in the error, not the key that it stands for.
  template <typename Load>
  auto named(const Load& load) const {
    try {
      return load();
    } catch (const Error& error) {
      const std::optional<std::string> typed = as_typed(error.what());
      if (!typed) throw;
      throw Error(*typed, static_cast<ErrorKind>(error.exit_code()));
    }
  }

  LoadedJob load(const std::string& base) const {
    LoadedJob job = named([&] { return load_cluster_job(base, texts); });
    for (auto& [key, source] : job.spec.sources) source = as_typed(source).value_or(source);
    return job;
  }
};

// Quotes a path for YAML.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "''" : std::string(1, c);
  return out + "'";
}

Overrides overrides_of(const BenchFlags& flags, std::optional<Func> func, int processes) {
  Overrides o;
  const std::string fabric = flags.fabric.empty() && processes > 1 ? "ofi" : flags.fabric;
  if (!func && fabric == "ofi") {  // a pattern over libfabric measures the real hosts
    o.add("cluster.nic.rate", "0", "default");
    o.add("scale.dilation", "1", "default");
  }
  o.add("cluster.base", flags.cluster, "--cluster");
  const std::optional<int> of_a_process = gpus_of_a_process(flags);
  const std::optional<int> gpus = of_a_process ? of_a_process : flags.gpus_per_node;
  const std::string origin = of_a_process ? "--ngpus" : "--gpus-per-node";
  o.add("cluster.gpus_per_node", gpus, origin);
  o.add("cluster.nics_per_node", gpus, origin);
  o.add("cluster.nics_per_node", flags.nics_per_node, "--nics-per-node");
  o.add("cluster.nic.rate", flags.nic_rate, "--nic-rate");
  o.add("cluster.nic.latency_us", flags.latency_us, "--latency");
  o.add("collectives.library", flags.library, "--library");
  if (func) o.add(algorithm_key(*func), flags.algorithm, "--algorithm");
  o.add("collectives.protocol", flags.protocol, "--protocol");
  o.add("collectives.channels", flags.channels, "--channels");
  o.add("collectives.max_channels", flags.max_channels, "--max-channels");
  o.add("collectives.node_template", flags.node, "--node");
  std::string plugins;
  for (const std::string& file : flags.plugins)
    plugins += (plugins.empty() ? "[" : ", ") + quoted(file);
  if (!plugins.empty()) o.add("collectives.plugins", plugins + "]", "--plugin");
  o.add("fabric.kind", fabric, flags.fabric.empty() ? "WORLD_SIZE" : "--fabric");
  o.add("scale.dilation", flags.dilation, "--dilation");
  o.add("run.seed", flags.seed, "--seed");
  if (flags.checks > 0) o.add("run.verify", "true", "--check");
  for (const std::string& text : flags.overrides) {
    o.texts.push_back(text);
    o.origins.erase(text.substr(0, text.find('=')));
  }
  return o;
}

// Refuses a flag of bench beside -s for the same key, of which only one could count.
void check_apart(const BenchFlags& flags) {
  check_seed(flags.seed, flags.overrides);
  const auto check = [&](bool given, const char* flag, const char* key, const char* what) {
    if (given && gives(flags.overrides, key))
      throw Error(std::string(flag) + " and -s " + key + " both say " + what +
                  "; give one of them");
  };
  check(flags.ranks.has_value(), "--ranks", "cluster.nodes", "how many nodes there are");
  check(flags.iterations.has_value(), "-n", "run.iterations", "how many calls are timed");
  check(flags.warmup.has_value(), "-w", "run.warmup", "how many calls come before them");
}

std::string transport_line(const LoadedJob& job, const Result& started) {
  std::set<std::string> names;
  for (const HostReport& host : started.hosts) {
    names.insert(host.provider == host.transport ? host.provider
                                                 : host.provider + ", " + host.transport);
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : "; ") + name;
  switch (job.spec.fabric.kind) {
    case FabricKind::virtual_time:
      return "fabric virtual: a modelled network in virtual time; there is no payload";
    case FabricKind::memory:
      break;
    default:
      return "fabric " + std::string(name_of(job.spec.fabric.kind)) + ": " + text +
             "; payload comes from and goes to shared buffers";
  }
  return job.spec.fabric.payload == PayloadMode::copied
             ? "fabric memory; every payload byte is copied"
             : "fabric memory; payload is not touched";
}

}  // namespace

std::optional<int> gpus_of_a_process(const BenchFlags& flags) {
  if (!flags.threads && !flags.gpus) return std::nullopt;
  return flags.threads.value_or(1) * flags.gpus.value_or(1);
}

SizeRange range_of(const BenchFlags& flags, const SizeRange& standard) {
  SizeRange range = standard;
  range.factor = flags.factor;
  range.increment = flags.increment;
  if (flags.first_bytes) range.first = *flags.first_bytes;
  range.last = flags.last_bytes.value_or(std::max(range.first, standard.last));
  if (!flags.first_bytes && flags.last_bytes) range.first = std::min(range.first, range.last);
  return range;
}

LoadedJob bench_job(const BenchFlags& flags, std::optional<Func> func, int processes) {
  if (gpus_of_a_process(flags) && flags.gpus_per_node) {
    throw Error("-t, -g and --gpus-per-node all say how many GPUs a node has; give one of them");
  }
  check_apart(flags);
  const std::string base = flags.cluster.empty() ? kStandard : "{}";
  Overrides overrides = overrides_of(flags, func, processes);
  const ClusterSize size =
      overrides.named([&] { return load_cluster_size(base, overrides.texts); });
  if (!size.nodes || flags.ranks) {
    // A pattern over several processes measures the network between real hosts, so by default each
    // process plays one node.
    const bool alone = gpus_of_a_process(flags) || (!func && processes > 1);
    const int least = processes * size.gpus_per_node;
    const int ranks = flags.ranks.value_or(alone ? least : std::max(kFewestRanks, least));
    if (ranks % size.gpus_per_node != 0) {
      throw Error("--ranks " + std::to_string(ranks) + " does not fill nodes of " +
                  std::to_string(size.gpus_per_node) +
                  " GPUs; give a multiple, or --gpus-per-node");
    }
    overrides.add("cluster.nodes", std::to_string(ranks / size.gpus_per_node),
                  flags.ranks ? "--ranks" : "default");
  }
  const LoadedJob sized = overrides.load(base);
  const bool in_virtual_time = sized.spec.fabric.kind == FabricKind::virtual_time;
  const auto calls = [&](const char* key, const std::optional<int>& given, int standard,
                         const char* flag) {
    if (!given && sized.spec.sources.contains(key)) return;  // set by -s
    overrides.add(key, std::to_string(given.value_or(standard)), given ? flag : "default");
  };
  calls("run.warmup", flags.warmup, in_virtual_time ? 0 : kWarmup, "--warmup_iters");
  calls("run.iterations", flags.iterations, kIterations, "--iters");
  LoadedJob job = overrides.load(base);
  if (job.spec.run.min_seconds > 0)
    throw Error("run.min_seconds: bench plays as many iterations as --iters says; leave it out");
  if (job.spec.run.end.is_open())
    throw Error(std::string(key_of_open_end(job.spec.run.end)) +
                ": bench plays as many iterations as --iters says; leave it out");
  if (job.spec.run.verify != (flags.checks > 0))
    throw Error(job.spec.source_of("run.verify") +
                ": run.verify: bench compares data as often as -c says; leave it out");
  for (ConfigEntry& entry : job.entries) {
    const auto found = overrides.origins.find(entry.path);
    if (found != overrides.origins.end()) entry.origin = found->second;
  }
  job.spec.file = "bench " + flags.what;
  return job;
}

LoadedJob with_calls(const LoadedJob& job, const BenchFlags& flags, const std::string& what,
                     const std::string& split) {
  LoadedJob out = job;
  const auto text = [](const auto& number) {
    return number ? std::to_string(*number) : std::string("default");
  };
  const std::vector<std::pair<std::string, std::string>> calls{
      {"the test", what},
      {"--minbytes", text(flags.first_bytes)},
      {"--maxbytes", text(flags.last_bytes)},
      {"--stepfactor", std::to_string(flags.factor)},
      {"--stepbytes", std::to_string(flags.increment)},
      {"--iters", flags.iterations ? "given" : "not given"},  // run.iterations has its value
      {"--datatype", flags.type},
      {"--op", flags.redop},
      {"--root", flags.root},
      {"--imbalance", text(flags.imbalance)},
      {"--check", std::to_string(flags.checks)},
      {"--agg_iters", std::to_string(flags.aggregated)},
      {"--run_cycles", std::to_string(flags.cycles)},
      {"--blocking 3", flags.apart ? "given" : "not given"},
      {"the split", split.empty() ? "none" : split}};
  for (const auto& [name, value] : calls) {
    out.entries.push_back({name, value, "command line"});
    out.config_json += "\n" + name + " " + value;  // what processes compare
  }
  return out;
}

std::vector<std::string> bench_facts(const LoadedJob& job, const Result& started) {
  const ClusterSpec& c = job.spec.cluster;
  const auto processes = static_cast<double>(std::max<std::size_t>(1, started.hosts.size()));
  const std::string rate = c.nic.rate_bps > 0 ? humane_bits(c.nic.rate_bps) : "unlimited rate";
  std::vector<std::string> facts{
      humane_count(started.ranks, "rank") + " on " + humane_count(c.nodes, "emulated node") + " (" +
          humane_count(c.gpus_per_node, "GPU") + ", " + humane_count(c.nics_per_node, "NIC") +
          " of " + rate + " each, " + humane_seconds(seconds(c.nic.latency)) +
          " between nodes), played by " + humane_count(processes, "process", "processes"),
      transport_line(job, started)};
  facts.insert(facts.end(), job.spec.notes.begin(), job.spec.notes.end());
  return facts;
}

}  // namespace ghostrank
