// No key of a job is silently without effect. Every key of `parallel` is tried under every
// framework, alone and beside the keys that it needs: the loader must refuse or note a key that the
// planner does not read, and a key that the loader takes must change the plan (or the planner must
// refuse it). The tests call planners without the loader's checks, so they compare the columns of
// the table with the keys that planners read, not with themselves.
#include "profiles/load/idle_keys.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "collectives/library.h"
#include "profiles/error.h"
#include "profiles/input/yaml.h"
#include "profiles/load/job_schema.h"
#include "profiles/load/program_file.h"
#include "profiles/load/sections/key_servers.h"
#include "profiles/load/sections/parallel.h"
#include "profiles/planners/background/background.h"
#include "profiles/planners/plan.h"
#include "tests/layers_job.h"
#include "tests/profiles/load/texts.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

using test::kHead;
using test::load_error;
using test::load_text;

struct Probe {
  std::string key;                  // without "parallel."
  std::vector<std::string> values;  // at least one must change the plan
  std::string beside = "";          // other keys, in the syntax of a job
  std::string model = "";           // for keys that models with experts refuse
};

// The jobs have 8 GPUs and 8 layers with experts; torchrec and kfac have models of their own.
const std::vector<Probe> kProbes{
    {"dp", {"3"}},
    {"micro_batch", {"2"}},
    {"global_batch", {"16"}},
    {"bucket_cap_mb", {"0.5"}},
    {"bucket_cap_mb", {"0.5"}, "launch: flat"},
    {"first_bucket_mb", {"0.1", "5000"}},
    {"first_bucket_mb", {"0.1"}, "launch: flat"},
    {"launch", {"flat", "after_backward"}},
    {"tp", {"2"}},
    {"pp", {"2"}},
    {"cp", {"2"}},
    {"ep", {"2"}},
    {"expert_tp", {"2"}},
    {"expert_dispatch", {"deduplicated"}, "ep: 8"},
    {"expert_imbalance", {"0.5"}, "ep: 4"},
    {"expert_load", {"[1, 2, 3, 4, 5, 6, 7, 8]"}, "ep: 4"},
    {"sequence_parallel", {"true"}, "tp: 2"},
    {"schedule", {"zb-h1"}, "pp: 2, global_batch: 16"},
    {"interleave", {"4"}, "pp: 2, global_batch: 16, schedule: interleaved"},
    {"interleave", {"4"}, "pp: 2, global_batch: 16, schedule: 1f1b"},
    {"distributed_optimizer", {"true"}},
    {"overlap_grad_reduce", {"false"}},
    {"overlap_param_gather", {"false"}, "distributed_optimizer: true"},
    {"bucket_size", {"1000000"}},
    {"bucket_size", {"1000000"}, "overlap_grad_reduce: false"},
    {"recompute", {"full"}},
    {"attention", {"unfused"}},
    {"gradient_accumulation_fusion", {"false"}},
    {"blocking_wait", {"true"}, "tp: 2"},
    {"blocking_wait", {"true"}},
    {"async_tensor_model_parallel_allreduce", {"false"}, "tp: 2", "llama3-8b"},
    {"async_tensor_model_parallel_allreduce", {"false"}, "tp: 2, sequence_parallel: true"},
    {"tp_comm_overlap", {"true"}, "tp: 2, sequence_parallel: true", "llama3-8b"},
    {"tp_comm_overlap", {"true"}},
    {"gradient_as_bucket_view", {"true"}},
    {"compile", {"true"}},
    {"optimizer_implementation", {"fused", "foreach"}},
    {"scatter_gather_tensors_in_pipeline", {"true"}, "pp: 2, tp: 2, sequence_parallel: true"},
    {"scatter_gather_tensors_in_pipeline", {"true"}},
    {"make_vocab_size_divisible_by", {"999"}},
    {"cp_comm", {"a2a"}, "cp: 2"},
    {"cp_a2a", {"2"}, "cp: 4, cp_comm: a2a+p2p"},
    {"order", {"pp-dp-ep-cp-tp"}, "pp: 2"},
    {"account_for_embedding_in_pipeline_split", {"true"}, "pp: 2"},
    {"account_for_loss_in_pipeline_split", {"true"}, "pp: 2"},
    {"decoder_first_pipeline_num_layers", {"3"}, "pp: 2"},
    {"decoder_last_pipeline_num_layers", {"3"}, "pp: 2"},
    {"pipeline_model_parallel_layout", {"Ettttt|tttL"}, "pp: 2"},
    {"expert_dispatch", {"deduplicated"}},
    {"expert_imbalance", {"0.5"}},
    {"expert_load", {"[1, 2, 3, 4, 5, 6, 7, 8]"}},
    {"sequence_parallel", {"true"}},
    {"overlap_param_gather", {"false"}},
    {"cp_comm", {"a2a"}},
    {"account_for_embedding_in_pipeline_split", {"true"}},
    {"account_for_loss_in_pipeline_split", {"true"}},
    {"dp_replicate", {"2"}},
    {"reshard_after_forward", {"never"}},
    {"prefetch", {"3"}},
    {"overlap_comm", {"true", "false"}},
    {"use_multi_rank_bucket_allreduce", {"false"}},
    {"stage3_prefetch_bucket_size",
     {"1", "1000000000000"},
     "stage3_max_live_parameters: 1000000000000"},
    {"stage3_param_persistence_threshold", {"100000000"}},
    {"stage3_max_live_parameters",
     {"1", "1000000000000"},
     "stage3_prefetch_bucket_size: 1000000000000"},
    {"stage3_max_reuse_distance", {"0"}},
    {"table_placement", {"random"}},
    {"row_wise_above", {"1000000"}},
    {"fusion_mb", {"1"}},
    {"cycle_ms", {"5", "0.01"}},
    {"cycle_ms", {"5"}, "launch: after_backward"},
    {"fusion", {"none"}},
    {"threshold_mb", {"1", "100000"}},
    {"threshold_mb", {"1"}, "fusion: none"},
    {"nearby_layers", {"2"}, "fusion: layers"},
    {"wait_ms", {"0.01", "1000"}, "fusion: waiting_time"},
    {"decouple", {"reduce"}},
    {"allreduce_cost", {"10gbe", "spdkfac"}},
    {"allreduce_cost", {"10gbe"}, "variant: ssgd"},
    {"partition_bytes", {"100000000"}},
    {"credit_bytes", {"0", "100000000000"}},
    {"variant", {"d"}},
    {"factor_launch", {"after_backward"}},
    {"factor_launch", {"after_backward"}, "variant: ssgd"},
    {"factor_fusion", {"none"}},
    {"factor_mb", {"1"}, "factor_fusion: threshold"},
    {"factor_mb", {"1"}},
    {"inverse_placement", {"round_robin"}},
    {"local_below", {"1"}},
    {"local_below", {"1"}, "inverse_placement: block"},
    {"second_order", {"gradients"}, "inverse_placement: round_robin"},
    {"fac_update_freq", {"2"}},
    {"kfac_update_freq", {"2"}},
    {"kfac_cost", {"spdkfac"}},
    {"kfac_cost", {"spdkfac"}, "variant: ssgd"},
    {"kfac_cost", {"rtx2080ti"}, "variant: ssgd"},
    {"exclude", {"factor_comm"}},
    {"mode", {"bound"}},
    {"key_hash", {"naive"}},
    {"key_hash", {"naive"}, "mode: bound"},
    {"server_schedule", {"true"}},
    {"asynchronous", {"true"}},
    {"server_timeout_us", {"500"}},
    {"elastic", {"true"}, "server_timeout_us: 500"},
    {"learning_rate", {"0.01"}},
    {"momentum", {"0.5"}},
    {"rack_nics", {"1"}},
};

std::string parallel_of(std::string_view framework, const std::string& keys) {
  return "parallel: {framework: " + std::string(framework) + (keys.empty() ? "" : ", ") + keys +
         "}\n";
}

std::string head_for(std::string_view framework, const std::string& model = "") {
  const std::string usual = framework == "torchrec" ? "dlrm-dcnv2"
                            : framework == "kfac"   ? "resnet50"
                                                    : "{base: mixtral-8x7b, layers: 8}";
  return "model: " + (model.empty() ? usual : model) +
         "\ndevice: {base: h100-sxm, memory_bytes: 0}\nprecision: {parameters: bf16}\n"
         "cluster: {nodes: 4, gpus_per_node: 2, nics_per_node: 2}\n" +
         (framework == "byteps" || framework == "phub" ? "servers: {count: 2}\n" : "");
}

// Options of the scheme that plays a framework's calls.
std::string text_of(const AtServers& options) {
  // With the best split (`bound`) BytePS ignores the hash.
  const int hash = options.bound ? -1 : static_cast<int>(options.hash);
  return std::to_string(options.partition_bytes) + " " + std::to_string(options.chunk_bytes) + " " +
         std::to_string(options.credit_bytes) + " " + std::to_string(hash) + " " +
         std::to_string(options.bound) + " " + std::to_string(options.schedules) + " " +
         std::to_string(options.optimizer.rate) + " " + std::to_string(options.optimizer.momentum) +
         " " + std::to_string(options.rack_nics) + " " + std::to_string(options.waits) + " " +
         std::to_string(options.timeout_ps) + " " +
         std::to_string(options.timeout_ps > 0 && options.elastic);
}

// A planner's answer to keys that the loader has not checked: a plan, or a refusal.
struct Plan {
  std::string text;
  bool refused = false;
};

Plan plan_past_the_loader(const LoadedJob& job, std::string_view framework,
                          const std::string& keys) {
  const YamlValue root = parse_yaml(parallel_of(framework, keys),
                                    std::make_shared<Source>(Source{"keys", "keys", true}));
  LoadedJob changed = job;
  changed.spec.parallel = read_parallel(Settings(root, job_keys(), "job"));
  try {
    return {program_job(job, plan_workload(changed.spec), ProgramForm::json) +
            text_of(key_server_options(changed.spec.parallel, 2))};
  } catch (const Error& error) {
    return {error.what(), true};
  }
}

// True if the loader refuses the key as meaningless, or notes that it has no effect.
bool is_idle(std::string_view framework, const std::string& keys, const std::string& key,
             const std::string& model) {
  const std::string text = head_for(framework, model) + parallel_of(framework, keys);
  std::vector<std::string> said;
  const std::string error = test::error_of([&] { said = load_text(text).spec.notes; });
  said.push_back(error);
  return std::any_of(said.begin(), said.end(), [&](const std::string& line) {
    return (line.find("means nothing") != std::string::npos || line.starts_with("no effect")) &&
           line.find("parallel." + key) != std::string::npos;
  });
}

bool is_refused_for(std::string_view framework, const std::string& keys) {
  return load_error(head_for(framework) + parallel_of(framework, keys))
             .find("means nothing to framework") != std::string::npos;
}

// The job without the key that is tried.
struct Without {
  std::string refusal;  // the loader's
  Plan plan;
};

// Computed once for all keys that are tried beside the same ones.
const Without& without(const LoadedJob& job, std::string_view framework, const std::string& model,
                       const std::string& beside) {
  static std::map<std::tuple<std::string, std::string, std::string>, Without> known;
  const auto [at, is_new] = known.try_emplace({std::string(framework), model, beside});
  if (is_new)
    at->second = {load_error(head_for(framework, model) + parallel_of(framework, beside)),
                  plan_past_the_loader(job, framework, beside)};
  return at->second;
}

// True if the loader takes the key and it changes the planner's answer.
bool try_out(const LoadedJob& job, std::string_view framework, const Probe& probe,
             bool with_what_it_needs) {
  const std::string beside = with_what_it_needs ? probe.beside : "";
  // The framework may refuse a value of `beside`: byteps has no flat launch.
  const auto& [why, plain] = without(job, framework, probe.model, beside);
  const bool refused_beside = !why.empty() && why.find("means nothing") == std::string::npos;
  bool changes = false, idle = false, refused = false;
  for (const std::string& value : probe.values) {
    const std::string keys = beside + (beside.empty() ? "" : ", ") + probe.key + ": " + value;
    const Plan plan = plan_past_the_loader(job, framework, keys);
    changes |= plan.text != plain.text;
    refused |= plan.refused;
    idle |= is_idle(framework, keys, probe.key, probe.model);
  }
  const std::string what =
      std::string(framework) + ", parallel." + probe.key + " beside {" + beside + "}";
  // fsdp shares TorchTitan's planner, which reads keys that the loader refuses for fsdp.
  const bool shared =
      framework == "fsdp" && is_refused_for("fsdp", probe.key + ": " + probe.values[0]);
  if (idle && !shared) {
    EXPECT_TRUE(!changes || refused) << what << " changes the plan, the loader denies it";
  } else if (!idle && !refused_beside && (with_what_it_needs || probe.beside.empty())) {
    EXPECT_TRUE(changes) << what << " does nothing, and nobody says so";
  }
  return changes && !idle;
}

TEST(IdleKeys, OfParallelAreThoseThatThePlannersDoNotRead) {
  std::set<std::string> effective;
  for (const auto& [framework, name] : kFrameworks) {
    const LoadedJob job = load_text(head_for(name) + parallel_of(name, ""));
    ASSERT_FALSE(plan_past_the_loader(job, name, "").refused) << name;
    for (const Probe& probe : kProbes) {
      const bool usual = probe.model.empty() || name != "megatron";
      const LoadedJob own =
          usual ? job : load_text(head_for(name, probe.model) + parallel_of(name, ""));
      if (try_out(own, name, probe, false)) effective.insert(probe.key);
      if (!probe.beside.empty() && !is_refused_for(name, probe.beside) &&
          try_out(own, name, probe, true))
        effective.insert(probe.key);
    }
  }
  // These act on the kernels of a device, which these jobs do not have.
  const std::set<std::string_view> on_kernels{"blocking_wait", "compile",
                                              "gradient_as_bucket_view"};
  for (const Probe& probe : kProbes)
    EXPECT_NE(effective.contains(probe.key), on_kernels.contains(probe.key)) << probe.key;
}

TEST(IdleKeys, EveryKeyOfParallelIsTried) {
  for (const Key& key : job_keys()) {
    if (!key.path.starts_with("parallel.") || key.path == "parallel.framework") continue;
    if (key.path == "parallel.tune") continue;  // emulator/tuner reads it, no planner does
    const auto is_of_key = [&](const Probe& probe) { return "parallel." + probe.key == key.path; };
    EXPECT_TRUE(std::any_of(kProbes.begin(), kProbes.end(), is_of_key)) << key.path;
  }
}

// Every key of a background, under every pattern: it changes the plan, or is refused by name.
TEST(IdleKeys, OfABackgroundChangeThePlanOrAreRefused) {
  const std::map<std::string_view, std::string> values{
      {"fan_in", "2"},   {"every", "3"},     {"over", "2"},    {"bytes", "70KiB"},
      {"rate", "1Gbps"}, {"chunk", "10KiB"}, {"at_once", "2"}, {"blocking", "true"}};
  const std::string_view patterns = background_keys()[0].allowed;
  ASSERT_EQ(words(patterns).size(), 5u);
  for (const std::string& pattern : words(patterns)) {
    const bool stored = pattern == "checkpoint" || pattern == "data";
    const auto job_with = [&](const std::string& key, const std::string& value) {
      std::string entry = "{pattern: " + pattern;
      for (const auto& [other, standard] : std::map<std::string, std::string>{
               {"bytes", "1MiB"}, {"chunk", "30KiB"}, {"every", "2"}})
        if (other != key) entry += ", " + other + ": " + standard;
      if (!key.empty()) entry += ", " + key + ": " + value;
      return "model: {kind: layers, name: one, layers: [{parameters: [9], forward_us: 9, "
             "backward_us: 9}]}\ncluster: {nodes: 4, gpus_per_node: 2, nics_per_node: 2" +
             std::string(stored ? ", storage_nodes: 1" : "") + "}\nbackground: [" + entry + "}]\n";
    };
    const LoadedJob plain = load_text(job_with("", ""));
    const auto plan_of = [&](const LoadedJob& job) {
      return program_job(plain, plan_workload(job.spec), ProgramForm::json);
    };
    for (const Key& key : background_keys()) {
      if (key.path == "pattern") continue;
      ASSERT_EQ(values.count(key.path), 1u) << key.path << " is not tried";
      const std::string text = job_with(std::string(key.path), values.at(key.path));
      const std::string error = load_error(text);
      if (error.empty()) {
        EXPECT_NE(plan_of(load_text(text)), plan_of(plain)) << pattern << ", " << key.path;
      } else {
        EXPECT_NE(error.find(std::string(key.path) + " means nothing to pattern: " + pattern),
                  std::string::npos)
            << error;
      }
    }
  }
}

template <std::size_t N, typename Kind>
std::vector<std::string> names_of(const std::pair<Kind, std::string_view> (&table)[N]) {
  std::vector<std::string> names;
  for (const auto& [kind, name] : table) names.emplace_back(name);
  return names;
}

TEST(IdleKeys, FrameworksAreThoseOfTheKey) {
  bool found = false;
  for (const Key& key : job_keys())
    if (key.path == "parallel.framework") {
      EXPECT_EQ(words(key.allowed), names_of(kFrameworks));
      found = true;
    }
  EXPECT_TRUE(found);
}

// A misspelt word in a row would make its key idle everywhere.
TEST(IdleKeys, RowsNameWhatThereIs) {
  const auto expect_among = [](std::string_view column, const std::vector<std::string>& known,
                               std::string_view path) {
    for (const std::string& word : words(column))
      EXPECT_NE(std::find(known.begin(), known.end(), word), known.end()) << path << ": " << word;
  };
  std::vector<std::string> libraries = names_of(kLibraries);
  libraries.emplace_back("plugin");
  for (const Key& key : job_keys()) {
    expect_among(key.frameworks, names_of(kFrameworks), key.path);
    expect_among(key.libraries, libraries, key.path);
    expect_among(key.fabrics, names_of(kFabricKinds), key.path);
    for (const Beside& one : key.beside) {
      if (one.key.empty()) continue;
      const auto other = std::find_if(job_keys().begin(), job_keys().end(),
                                      [&](const Key& row) { return row.path == one.key; });
      ASSERT_NE(other, job_keys().end()) << key.path << ": " << one.key;
      if (other->type == KeyType::choice) expect_among(one.values, words(other->allowed), key.path);
    }
  }
}

using Lines = std::vector<std::string>;

Lines notes(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return load_text(kHead + text, overrides).spec.notes;
}

TEST(IdleKeys, OfAnotherFabricAreNotedWhereTheJobChoseItsFabric) {
  const std::string network =
      "fabric: {kind: ofi, provider: tcp, bind: lo, flows: nic, frames: off}\n";
  EXPECT_EQ(notes(network), Lines{});
  EXPECT_EQ(notes(network, {"fabric.kind=virtual"}),
            Lines{"no effect on fabric virtual: fabric.provider, fabric.bind, fabric.flows, "
                  "fabric.frames"});
  EXPECT_EQ(load_error(kHead + "fabric: {provider: tcp}\n"),
            "job.yaml:4:20: fabric.provider means nothing to fabric memory; leave it out, or use "
            "fabric.kind: ofi");
  EXPECT_EQ(notes("scale: {dilation: 2}\nrun: {min_seconds: 3, stall_timeout_s: 9}\n"
                  "fabric: {payload: copied}\n"),
            Lines{});
  EXPECT_EQ(notes("scale: {dilation: 2}\nrun: {min_seconds: 3, stall_timeout_s: 9}\n"
                  "fabric: {kind: virtual, payload: copied}\n"),
            Lines{"no effect on fabric virtual: scale.dilation, fabric.payload, run.min_seconds"});
  const std::string links = "cluster: {nodes: 4, topology: {kind: leaf_spine, leaves: 2}}\n";
  EXPECT_EQ(notes(links), Lines{});
  EXPECT_EQ(notes(links, {"fabric.kind=ofi"}),
            Lines{"no effect on fabric ofi: cluster.topology.kind, cluster.topology.leaves"});
}

TEST(IdleKeys, SomeValuesNeedMoreThanTheirKey) {
  const std::string wire = "fabric: {kind: ofi, colocated: wire, namespaces: 'gr{node}'}\n";
  EXPECT_EQ(notes(wire), Lines{});
  EXPECT_EQ(load_text(kHead + wire).spec.fabric.colocated, Colocated::wire);
  EXPECT_EQ(notes(wire, {"fabric.kind=virtual"}),
            Lines{"no effect on fabric virtual: fabric.colocated, fabric.namespaces"});
  EXPECT_EQ(load_text(kHead + wire, {"fabric.kind=memory"}).spec.fabric.colocated,
            Colocated::memory);
  EXPECT_EQ(notes("fabric: {colocated: model}\n"), Lines{});
  EXPECT_EQ(notes("fabric: {kind: virtual, colocated: model}\n"),
            Lines{"no effect on fabric virtual: fabric.colocated"});
  EXPECT_EQ(notes("hosts: [{name: a, cores: '0'}]\nfabric: {kind: memory}\n"), Lines{});
  EXPECT_EQ(notes("hosts: [{name: a}, {name: b}]\nfabric: {kind: memory}\n"),
            Lines{"no effect on fabric memory: hosts"});
  EXPECT_EQ(notes("fabric: {packets: {mtu: 1500}, framing: udp}\n"), Lines{});
  EXPECT_EQ(notes("fabric: {packets: {mtu: 1500}}\ncollectives: {allreduce: ring}\n"),
            Lines{"no effect where no collective is played by a scheme: fabric.packets.mtu"});
  const std::string packets = "fabric: {kind: packets, packets: {mtu: 1500}}\n";
  EXPECT_EQ(notes(packets), Lines{});
  EXPECT_EQ(notes(packets, {"fabric.kind=virtual"}),
            Lines{"no effect where no collective is played by a scheme: fabric.packets.mtu"});
  EXPECT_EQ(notes("compression: {method: fp16, ratio: 0.5}\n"),
            Lines{"no effect where compression.method is fp16: compression.ratio"});
  EXPECT_EQ(notes("compression: {method: topk, ratio: 0.5}\n"), Lines{});
  EXPECT_EQ(
      notes("precision: {optimizer: sgd}\nparallel: {framework: phub}\nservers: {count: 1}\n"),
      Lines{"no effect where servers step the weights: precision.optimizer"});
}

TEST(IdleKeys, BesideAnotherKeyAreNotedWhereThatIsGivenAndElseRefused) {
  EXPECT_EQ(load_error(kHead + "servers: {nics: 4}\n"),
            "job.yaml:4:17: servers.nics means nothing where servers.count is 0; leave it out, or "
            "change servers.count");
  EXPECT_EQ(notes("servers: {count: 0, nics: 4}\n"),
            Lines{"no effect where servers.count is 0: servers.nics"});
  const std::string served =
      "cluster: {nodes: 2}\ncollectives: {allreduce: parameter_server}\n"
      "servers: {count: 2, nics: 4";
  EXPECT_EQ(notes(served + "}\n"), Lines{});
  EXPECT_EQ(notes(served + ", placement: colocated}\n"),
            Lines{"no effect where servers.placement is colocated: servers.nics"});
  EXPECT_EQ(notes("cluster: {topology: {kind: nonblocking, spines: 3}}\n"),
            Lines{"no effect where cluster.topology.kind is nonblocking: cluster.topology.spines"});
  EXPECT_EQ(load_error(kHead + "tensors: {block: 512}\n"),
            "job.yaml:4:18: tensors.block means nothing where tensors.density is 1; leave it out, "
            "or change tensors.density");
}

TEST(IdleKeys, OfSchemesAreNotedWhereTheJobChoseItsAlgorithms) {
  EXPECT_EQ(load_error(kHead + "switch: {slots: 8}\n"),
            "job.yaml:4:17: switch.slots means nothing here: no collective is played by switchml "
            "or sharp or atp or omnireduce_switch or orca or elmo or unicast; name one "
            "(collectives: {allreduce: switchml}), or leave it out");
  const std::string job = "switch: {slots: 8}\nfabric: {packets: {loss: 0.1}}\n";
  EXPECT_EQ(notes(job + "collectives: {allreduce: ring}\n"),
            (Lines{"no effect where no collective is played by switchml or sharp or atp or "
                   "omnireduce_switch or orca or elmo or unicast: switch.slots",
                   "no effect where no collective is played by switchml or atp or omnireduce or "
                   "omnireduce_switch: fabric.packets.loss"}));
  EXPECT_EQ(notes("parallel: {framework: byteps}\nservers: {count: 1}\nswitch: {slots: 8}\n"),
            Lines{"no effect where no collective is played by switchml or sharp or atp or "
                  "omnireduce_switch or orca or elmo or unicast: switch.slots"});
  EXPECT_EQ(notes(job + "collectives: {allreduce: switchml}\n"), Lines{});
  EXPECT_EQ(notes(job + "collectives: {broadcast: orca}\n"),
            Lines{"no effect where no collective is played by switchml or atp or omnireduce or "
                  "omnireduce_switch: fabric.packets.loss"});
  const std::string omni = "omnireduce: {slots: 8}\nservers: {count: 1}\ncollectives: {allreduce: ";
  EXPECT_EQ(notes(omni + "switchml}\n"),
            Lines{"no effect where no collective is played by omnireduce: omnireduce.slots"});
  EXPECT_EQ(notes(omni + "omnireduce}\n"), Lines{});
}

TEST(IdleKeys, AtTheirDefaultsMayStandAnywhere) {
  EXPECT_EQ(notes("fabric: {kind: virtual, provider: auto, bind: '', payload: untouched}\n"
                  "scale: {dilation: auto}\nplacement: blocked\nhosts: []\n"
                  "servers: {count: 0, nics: 1, nic: {rate: 400Gbps, latency_us: 2}}\n"),
            Lines{});
  const LoadedJob job = load_text(kHead + "fabric: {kind: virtual}\n");
  EXPECT_EQ(load_text(job.config_json).spec.notes, Lines{});  // the JSON gives every key
}

TEST(IdleKeys, OfThePlanAreNotedBesideAProgram) {
  const LoadedJob job = load_text(kHead +
                                  "cluster: {nodes: 2}\nfabric: {kind: virtual}\n"
                                  "parallel: {micro_batch: 4, launch: flat}\n");
  const LoadedJob again = load_text(program_job(job, plan_workload(job.spec), ProgramForm::json));
  EXPECT_EQ(again.spec.notes, Lines{"no effect on a program or trace, which is played as it is: "
                                    "model, parallel.micro_batch, parallel.launch"});
}

TEST(IdleKeys, OfTheDeviceAreNotedWhereTheJobGivesThem) {
  const auto notes_of = [](const std::string& model, const std::string& override,
                           const std::string& more = "") {
    return load_text("model: " + model + "\ndevice: h100-sxm\n" + more, {override}).spec.notes;
  };
  const std::string gpt = "gpt2", experts = "{base: mixtral-8x7b, layers: 2}",
                    efficiency = "device.efficiency=0.9", matmul = "device.kernels.matmul=0.3";
  const Lines idle{"no effect where compute is by kernels: device.efficiency"};
  EXPECT_EQ(notes_of(gpt, efficiency), idle);
  EXPECT_EQ(notes_of(gpt, "device={base: h100-sxm, efficiency: 0.9}"), idle);
  EXPECT_EQ(notes_of(gpt, matmul), Lines{});
  EXPECT_EQ(notes_of(gpt, "device.memory_GBps=3000"), Lines{});
  EXPECT_EQ(notes_of("resnet50", efficiency), Lines{});
  EXPECT_EQ(notes_of("resnet50", "device={base: h100-sxm, kernels: {matmul: 0.3, memory: 0.5}}"),
            Lines{"no effect where compute is not by kernels: device.kernels.matmul, "
                  "device.kernels.memory"});
  EXPECT_EQ(notes_of(experts, efficiency), Lines{});
  EXPECT_EQ(notes_of(experts, efficiency, "parallel: {framework: megatron}\n"), idle);
  EXPECT_EQ(notes_of(experts, matmul), Lines{});
  EXPECT_EQ(notes_of(gpt, "device={base: h100-sxm, multiprocessors: 0, efficiency: 0.9}"), Lines{});
}

// The formula is fitted to measured products, and corrected by measured kernels of every kind.
TEST(IdleKeys, StatedSharesAreNotedBesideMeasuredKernels) {
  const auto notes_of = [](const std::string& kernels, const std::string& type = "bf16") {
    return load_text("model: gpt2\nprecision: {parameters: " + type +
                     "}\ndevice: {base: h200-measured, kernels: {" + kernels + "}}\n")
        .spec.notes;
  };
  const std::string note =
      "little effect beside measured kernels, which products: '', transfers: '' and attention: '' "
      "leave out: device.kernels.";
  EXPECT_EQ(notes_of("matmul: 0.1"), Lines{note + "matmul"});
  EXPECT_EQ(notes_of("launch_us: 9, memory: 0.1, host_us: 1"),
            Lines{note + "launch_us, device.kernels.memory"});
  EXPECT_EQ(notes_of("matmul: 0.1, products: ''"), Lines{});
  EXPECT_EQ(notes_of("host_us: 1"), Lines{});
}

TEST(IdleKeys, AlgorithmsOfCallsThatAreNeverMadeAreNoted) {
  const auto said = [](const std::string& collectives) {
    const JobSpec spec = load_text(kHead + "collectives: " + collectives + "\n").spec;
    return notes_of(spec, plan_workload(spec));
  };
  EXPECT_EQ(said("{allreduce: ring, broadcast: binomial}"), Lines{});
  EXPECT_EQ(said("{allreduce: ring, all_to_all: pairwise, groups: {dp: {all_gather: ring}}}"),
            Lines{"no effect, as the job makes no such call: collectives.all_to_all, "
                  "collectives.groups.dp.all_gather"});
}

// A token of a layer of GPT-2 passes 12 h h weights, each with 2 FLOPs, and 4 s h FLOPs of scores.
TEST(Notes, SayThatADeviceChangesNoMeasuredTimes) {
  const auto notes_with = [](const std::string& device) {
    const JobSpec spec = load_text(text_of(test::LayersJob{.layers = {{"[300]"}}}) + device).spec;
    return notes_of(spec, plan_workload(spec));
  };
  EXPECT_EQ(notes_with("device: h100-sxm\n"),
            Lines{"the model's times are measured: device changes none of them"});
  EXPECT_EQ(notes_with(""), Lines{});
}

TEST(Notes, SayWhichShareOfTheFlopsAMaskLeavesOut) {
  const auto said = [](const std::string& model) {
    const JobSpec spec = load_text("model: " + model + "\ndevice: h100-sxm\n").spec;
    return notes_of(spec, plan_workload(spec));
  };
  const double h = 768, s = 8192, scores = 4 * s * h, rest = 24 * h * h + 2 * h * 50257 / 12;
  const std::string share = std::to_string(std::lround(100 * scores / 2 / (scores + rest)));
  EXPECT_EQ(said("{base: gpt2, sequence: 8192}"),
            Lines{"model FLOPs and MFU count all of attention's scores; the half that the causal "
                  "mask leaves out is " +
                  share + " % of them"});
  EXPECT_EQ(said("gpt2"), Lines{});
  EXPECT_EQ(said("{base: bert-base, sequence: 8192}"), Lines{}) << "attention without a mask";
}

}  // namespace
}  // namespace ghostrank
