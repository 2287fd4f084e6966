// Loading a job: file, then environment, then -s flags, each merged over the one before; profiles
// resolved; every key checked; the result as values, as entries with origins and as JSON.
#include "profiles/job.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "profiles/collective_options.h"
#include "profiles/config.h"
#include "profiles/device.h"
#include "profiles/error.h"
#include "profiles/hosts.h"
#include "profiles/job_collectives.h"
#include "profiles/job_schema.h"
#include "profiles/locate.h"
#include "profiles/megatron_routing.h"
#include "profiles/model.h"
#include "profiles/program_file.h"
#include "profiles/quantity.h"

namespace ghostrank {
namespace {

// The ranks of a job are numbered and held in lists; far above any cluster, far below overflow.
constexpr std::int64_t kMaxRanks = 1 << 24;

YamlValue read_job_tree(const std::string& path) {
  YamlValue root = parse_yaml_file(path);
  const YamlValue* schema = root.find("schema");
  if (!schema || schema->text != kResultSchema) return root;
  YamlValue* config = root.find("config");
  if (!config || !config->is_map())
    fail(root.mark, "a result without a config cannot be replayed; give a job file");
  YamlValue job = std::move(*config);
  return job;
}

// A group given as one name ("cluster: hgx-h100-400g") is the base of an empty mapping.
void expand_cluster(YamlValue& root, const std::string& near) {
  YamlValue* cluster = root.find("cluster");
  if (!cluster) return;
  if (cluster->is_scalar()) *cluster = with_base(*cluster);
  if (!cluster->is_map()) return;
  const YamlValue* base = cluster->find("base");
  if (!base || base->text.empty()) return;
  YamlValue full = resolve_profile(*cluster, kClusterProfile, near);
  full.key = cluster->key;
  full.key_mark = cluster->key_mark;
  std::erase_if(full.children, [](const YamlValue& child) { return child.key == "name"; });
  full.children.push_back(*base);
  *cluster = std::move(full);
}

void read_cluster(const Settings& in, ClusterSpec& out) {
  out.nodes = in.small("cluster.nodes");
  out.gpus_per_node = in.small("cluster.gpus_per_node");
  out.nics_per_node = in.small("cluster.nics_per_node");
  out.nic = {in.number("cluster.nic.rate"), in.micros("cluster.nic.latency_us")};
  out.intra_node = {in.number("cluster.intra_node.rate"),
                    in.micros("cluster.intra_node.latency_us")};
  const std::int64_t ranks = std::int64_t{out.nodes} * out.gpus_per_node;
  if (ranks > kMaxRanks)
    fail(in.at("cluster.nodes").mark, "the cluster has " + std::to_string(ranks) +
                                          " GPUs; at most " + std::to_string(kMaxRanks) +
                                          " are supported, lower nodes");
}

// Keys of `parallel` that only some frameworks know; the others are common to all.
struct FrameworkKey {
  const char* path;
  std::string_view frameworks;  // separated by blanks
};
constexpr std::array kFrameworkKeys{
    FrameworkKey{"parallel.bucket_cap_mb", "ddp"},
    FrameworkKey{"parallel.first_bucket_mb", "ddp"},
    FrameworkKey{"parallel.launch", "ddp"},
    FrameworkKey{"parallel.tp", "megatron torchtitan"},
    FrameworkKey{"parallel.pp", "megatron torchtitan"},
    FrameworkKey{"parallel.cp", "megatron"},
    FrameworkKey{"parallel.ep", "megatron torchtitan"},
    FrameworkKey{"parallel.expert_tp", "megatron"},
    FrameworkKey{"parallel.expert_dispatch", "megatron"},
    FrameworkKey{"parallel.expert_imbalance", "megatron"},
    FrameworkKey{"parallel.expert_load", "megatron"},
    FrameworkKey{"parallel.sequence_parallel", "megatron"},
    FrameworkKey{"parallel.schedule", "megatron torchtitan"},
    FrameworkKey{"parallel.interleave", "megatron torchtitan"},
    FrameworkKey{"parallel.global_batch", "megatron torchtitan"},
    FrameworkKey{"parallel.distributed_optimizer", "megatron"},
    FrameworkKey{"parallel.overlap_grad_reduce", "megatron"},
    FrameworkKey{"parallel.overlap_param_gather", "megatron"},
    FrameworkKey{"parallel.bucket_size", "megatron zero1 zero2 zero3"},
    FrameworkKey{"parallel.overlap_comm", "zero1 zero2 zero3"},
    FrameworkKey{"parallel.use_multi_rank_bucket_allreduce", "zero1 zero2"},
    FrameworkKey{"parallel.stage3_prefetch_bucket_size", "zero3"},
    FrameworkKey{"parallel.stage3_param_persistence_threshold", "zero3"},
    FrameworkKey{"parallel.stage3_max_live_parameters", "zero3"},
    FrameworkKey{"parallel.stage3_max_reuse_distance", "zero3"},
    FrameworkKey{"parallel.recompute", "megatron"},
    FrameworkKey{"parallel.cp_comm", "megatron"},
    FrameworkKey{"parallel.cp_a2a", "megatron"},
    FrameworkKey{"parallel.order", "megatron"},
    FrameworkKey{"parallel.account_for_embedding_in_pipeline_split", "megatron"},
    FrameworkKey{"parallel.account_for_loss_in_pipeline_split", "megatron"},
    FrameworkKey{"parallel.decoder_first_pipeline_num_layers", "megatron"},
    FrameworkKey{"parallel.decoder_last_pipeline_num_layers", "megatron"},
    FrameworkKey{"parallel.pipeline_model_parallel_layout", "megatron"},
    FrameworkKey{"parallel.dp_replicate", "fsdp torchtitan"},
    FrameworkKey{"parallel.reshard_after_forward", "fsdp torchtitan"},
    FrameworkKey{"parallel.prefetch", "fsdp torchtitan"},
    FrameworkKey{"parallel.fusion_mb", "horovod"},
    FrameworkKey{"parallel.cycle_ms", "horovod"},
};

// What a framework does not know of is refused, not ignored; its default may stand there.
void refuse_foreign_parallel(const Settings& in, const std::string& framework) {
  for (const FrameworkKey& one : kFrameworkKeys) {
    const Setting& setting = in.at(one.path);
    const auto known = words(one.frameworks);
    if (!setting.given || setting.text == setting.key->standard ||
        std::find(known.begin(), known.end(), framework) != known.end())
      continue;
    fail(setting.mark, std::string(one.path) + " means nothing to framework " + framework +
                           "; leave it out, or use parallel.framework: " + join(known, " or "));
  }
}

void read_megatron(const Settings& in, ParallelPlan& out) {
  out.tp = in.small("parallel.tp");
  out.pp = in.small("parallel.pp");
  out.cp = in.small("parallel.cp");
  out.ep = in.small("parallel.ep");
  out.expert_tp = in.small("parallel.expert_tp");
  out.deduplicated = in.text("parallel.expert_dispatch") == "deduplicated";
  out.expert_imbalance = in.number("parallel.expert_imbalance");
  out.expert_load = read_expert_load(in.at("parallel.expert_load").raw);
  out.sequence_parallel = in.boolean("parallel.sequence_parallel");
  out.schedule = in.text("parallel.schedule");
  out.interleave = in.small("parallel.interleave");
  out.global_batch = in.small("parallel.global_batch");
  out.distributed_optimizer = in.boolean("parallel.distributed_optimizer");
  out.overlap_grad_reduce = in.boolean("parallel.overlap_grad_reduce");
  out.overlap_param_gather = in.boolean("parallel.overlap_param_gather");
  out.bucket_size = static_cast<std::uint64_t>(in.integer("parallel.bucket_size"));
  const std::string& recompute = in.text("parallel.recompute");
  out.recompute = recompute == "full"        ? Recompute::full
                  : recompute == "selective" ? Recompute::selective
                                             : Recompute::none;
  const std::string& comm = in.text("parallel.cp_comm");
  out.cp_a2a = in.small("parallel.cp_a2a");
  out.cp_comm = comm == "a2a"          ? ContextComm::a2a
                : comm == "a2a+p2p"    ? ContextComm::hierarchical
                : comm == "all_gather" ? ContextComm::all_gather
                                       : ContextComm::p2p;
  out.order = in.text("parallel.order");
  out.embedding_in_split = in.boolean("parallel.account_for_embedding_in_pipeline_split");
  out.loss_in_split = in.boolean("parallel.account_for_loss_in_pipeline_split");
  out.first_layers = in.small("parallel.decoder_first_pipeline_num_layers");
  out.last_layers = in.small("parallel.decoder_last_pipeline_num_layers");
  out.pipeline_layout = in.text("parallel.pipeline_model_parallel_layout");
}

void read_zero(const Settings& in, ParallelPlan& out) {
  const auto elements = [&](const char* key) {
    return static_cast<std::uint64_t>(in.integer(key));
  };
  const std::string& overlap = in.text("parallel.overlap_comm");
  out.overlap_comm = overlap == "auto" ? out.framework == "zero3" : overlap == "true";
  out.multi_rank_allreduce = in.boolean("parallel.use_multi_rank_bucket_allreduce");
  out.prefetch_bucket = elements("parallel.stage3_prefetch_bucket_size");
  out.persistence = elements("parallel.stage3_param_persistence_threshold");
  out.max_live = elements("parallel.stage3_max_live_parameters");
  out.max_reuse = elements("parallel.stage3_max_reuse_distance");
}

void read_parallel(const Settings& in, ParallelPlan& out) {
  out.framework = in.text("parallel.framework");
  out.dp = in.small("parallel.dp");
  out.bucket_cap_mb = in.number("parallel.bucket_cap_mb");
  out.first_bucket_mb = in.number("parallel.first_bucket_mb");
  out.micro_batch = in.small("parallel.micro_batch");
  const std::string& launch = in.text("parallel.launch");
  out.launch = launch == "flat"             ? Launch::flat
               : launch == "after_backward" ? Launch::after_backward
                                            : Launch::overlap;
  out.dp_replicate = in.small("parallel.dp_replicate");
  out.reshard = in.text("parallel.reshard_after_forward");
  out.prefetch = in.small("parallel.prefetch");
  out.fusion_mb = in.number("parallel.fusion_mb");
  out.cycle_ms = in.number("parallel.cycle_ms");
  refuse_foreign_parallel(in, out.framework);
  read_megatron(in, out);
  read_zero(in, out);
}

// Where every flow is to be as the library's own, its messages stay apart unless frames are asked
// for.
std::uint64_t read_frames(const Settings& in, FlowKind flows) {
  const Setting& frames = in.at("fabric.frames");
  if (frames.text == "off") return 0;
  if (frames.text == "auto") return flows == FlowKind::process ? 16 << 10 : 0;
  const std::optional<std::uint64_t> bytes = parse_size(frames.text);
  if (!bytes || *bytes < (1 << 10) || *bytes > (64 << 10))
    fail(frames.mark, "fabric.frames: " + quote(frames.text) +
                          " is neither auto nor off nor a size from 1KiB to 64KiB");
  return *bytes;
}

// Names of the settings that contradict each other.
void check_fabric(const Settings& in, const FabricSpec& spec) {
  const auto refuse = [&](const char* key, bool wrong, const std::string& why) {
    if (wrong) fail(in.at(key).mark, std::string(key) + ": " + why);
  };
  refuse("fabric.colocated", spec.colocated == Colocated::wire && spec.kind != FabricKind::ofi,
         "wire sends through a real network, which needs fabric.kind: ofi");
  refuse("fabric.namespaces", !spec.namespaces.empty() && spec.colocated != Colocated::wire,
         "only fabric.colocated: wire opens namespaces; set it, or leave them out");
  refuse("fabric.namespaces",
         !spec.namespaces.empty() && spec.namespaces.find("{node}") == std::string::npos,
         "needs {node} in it, as in gr{node}: every emulated node has a namespace of its own");
}

void read_fabric(const Settings& in, FabricSpec& out) {
  const std::string& kind = in.text("fabric.kind");
  out.kind = kind == "ofi"       ? FabricKind::ofi
             : kind == "virtual" ? FabricKind::virtual_time
                                 : FabricKind::memory;
  out.provider = in.text("fabric.provider");
  out.bind = in.text("fabric.bind");
  const std::string& flows = in.text("fabric.flows");
  out.flows = flows == "nic"          ? FlowKind::nic
              : flows == "connection" ? FlowKind::connection
                                      : FlowKind::process;
  const std::string& colocated = in.text("fabric.colocated");
  out.colocated = colocated == "wire"    ? Colocated::wire
                  : colocated == "model" ? Colocated::model
                                         : Colocated::memory;
  out.frame_bytes = read_frames(in, out.flows);
  out.namespaces = in.text("fabric.namespaces");
  check_fabric(in, out);
  out.inside_node =
      in.text("fabric.inside_node") == "messages" ? InsideNode::messages : InsideNode::model;
  out.payload =
      in.text("fabric.payload") == "copied" ? PayloadMode::copied : PayloadMode::untouched;
}

void read_run(const Settings& in, RunSpec& out) {
  out.iterations = in.small("run.iterations");
  out.warmup = in.small("run.warmup");
  out.verify = in.boolean("run.verify");
  out.seed = static_cast<std::uint64_t>(in.integer("run.seed"));
  out.jitter = in.number("run.jitter");
  out.compute_slowdown = in.number("run.compute_slowdown");
  out.stall_timeout_s = in.number("run.stall_timeout_s");
  out.shards = in.small("run.shards");
  out.probe_ms = in.small("run.probe_ms");
}

void read_precision(const Settings& in, Precision& out) {
  out.parameters = *parse_data_type(in.text("precision.parameters"));
  out.gradients = *parse_data_type(in.text("precision.gradients"));
  out.optimizer = in.text("precision.optimizer");
}

// A model that is described by its FLOPs needs a device that can do them.
void check_device(const JobSpec& spec, const Settings& in) {
  if (spec.model->measured) return;
  const Setting& device = in.at("device");
  if (!device.given)
    fail(in.at("model").mark, "the layers of " + quote(spec.model->name) +
                                  " have no measured times; add a device, as in device: h100-sxm");
  if (matmul_peak_tflops(spec.device, spec.precision.parameters) > 0) return;
  const Setting& type = in.at("precision.parameters");
  fail(type.given ? type.mark : device.mark, "the device " + quote(spec.device.name) +
                                                 " has no peak_tflops for " + type.text +
                                                 "; choose another precision.parameters");
}

void check_program_size(const JobSpec& spec, const Settings& in) {
  if (spec.program->ranks == spec.cluster.gpus()) return;
  fail(in.at("program").mark, "the program has " + std::to_string(spec.program->ranks) +
                                  " ranks but the cluster " + std::to_string(spec.cluster.gpus()) +
                                  " GPUs; they must be as many");
}

// Gradients have the type of a measured model unless the job says otherwise.
bool take_dtype(YamlValue& root, const Model& model, const Settings& in) {
  if (!model.dtype || in.given("precision.gradients")) return false;
  YamlValue type;
  type.kind = YamlValue::Kind::scalar;
  type.text = name_of(*model.dtype);
  type.mark = in.at("model").mark;
  set_path(root, "precision.gradients", std::move(type));
  return true;
}

// What a job has whatever it plays.
void read_setting(const Settings& in, const std::string& near, JobSpec& spec) {
  read_cluster(in, spec.cluster);
  spec.collectives = read_collectives(in, near);
  check_nccl_graphs(in.at("collectives.node_template"), spec.cluster, spec.collectives);
  spec.hosts = read_hosts(in.at("hosts"), spec.cluster.nics_per_node);
  spec.placement = read_placement(in.at("placement"), spec.hosts, spec.cluster.nodes, near);
  spec.dilation = in.number("scale.dilation");
  read_fabric(in, spec.fabric);
  read_run(in, spec.run);
  for (const Setting& setting : in.all())
    if (setting.given) spec.places.emplace(std::string(setting.key->path), location(setting.mark));
}

JobSpec make_spec(const Settings& in, std::shared_ptr<const Model> model, const YamlValue* device,
                  const std::string& near) {
  JobSpec spec;
  spec.model = std::move(model);
  if (spec.model) spec.model_name = spec.model->name;
  if (device) spec.device = make_device(*device);
  read_precision(in, spec.precision);
  read_parallel(in, spec.parallel);
  read_setting(in, near, spec);
  return spec;
}

// Entries and JSON of a job whose spec is read.
void write_config(const Settings& in, std::map<std::string, YamlValue> resolved, LoadedJob& job) {
  job.entries = make_entries(in);
  if (!job.spec.placement.host_of_node.empty())
    resolved["placement"] =
        placement_lines(job.spec.placement, job.spec.hosts, in.at("placement").mark);
  job.config_json = make_config_json(in, resolved);
}

// The keys that describe what is trained.
bool is_about_training(const Key& key) {
  for (const std::string_view group :
       {"model", "trace", "program", "device", "precision.", "parallel.", "tensors."}) {
    if (group.back() == '.' ? key.path.starts_with(group) : key.path == group) return true;
  }
  return false;
}

}  // namespace

std::string algorithm_key(Func func) { return "collectives." + std::string(name_of(func)); }

std::string& CollectiveSpec::algorithm(Func func) {
  switch (func) {
    case Func::all_reduce:
      return allreduce;
    case Func::reduce_scatter:
      return reduce_scatter;
    case Func::all_gather:
      return all_gather;
    case Func::broadcast:
      return broadcast;
    case Func::reduce:
      return reduce;
    case Func::all_to_all:
      return all_to_all;
    case Func::send_recv:
      return send_recv;
    case Func::gather:
      return gather;
    case Func::scatter:
      return scatter;
    case Func::all_gather_v:
      return all_gather_v;
    case Func::all_to_all_v:
      return all_to_all_v;
    case Func::barrier:
      break;
  }
  return barrier;
}

const std::string& CollectiveSpec::algorithm(Func func) const {
  return const_cast<CollectiveSpec*>(this)->algorithm(func);
}

const std::string& CollectiveSpec::algorithm(Func func, const std::string& group) const {
  const auto of_group = groups.find(group);
  if (of_group == groups.end()) return algorithm(func);
  const auto named = of_group->second.find(func);
  return named == of_group->second.end() ? algorithm(func) : named->second;
}

const std::string& JobSpec::place(const std::string& key) const {
  const auto at = places.find(key);
  return at == places.end() ? file : at->second;
}

LoadedJob load_job(const std::string& path, const std::vector<std::string>& overrides) {
  const std::string file = find_job_file(path);
  const std::string near = folder_of(file);
  YamlValue root = read_job_tree(file);
  if (!root.is_map()) fail(root.mark, "a job is a mapping of keys; found " + description(root));
  apply_environment(root);
  for (const std::string& text : overrides) apply_override(root, text);
  expand_cluster(root, near);
  const auto program = take_program(root, file, near);

  auto settings = std::make_unique<Settings>(root, job_keys(), "job");
  std::map<std::string, YamlValue> resolved;
  for (const ProfileKind& kind : {kModelProfile, kDeviceProfile}) {
    const std::string name(kind.name);
    if (settings->given(name))
      resolved[name] = resolve_profile(*settings->at(name).raw, kind, near);
  }
  std::shared_ptr<const Model> model;
  if (settings->given("model"))
    model = std::make_shared<const Model>(make_model(resolved["model"]));
  else if (!program)
    fail(root.mark, "job has no model; add it: " + std::string(settings->at("model").key->doc));
  if (model && take_dtype(root, *model, *settings))
    settings = std::make_unique<Settings>(root, job_keys(), "job");

  LoadedJob job;
  job.spec =
      make_spec(*settings, model, settings->given("device") ? &resolved["device"] : nullptr, near);
  job.spec.file = file;
  job.spec.program = program;
  if (program)
    check_program_size(job.spec, *settings);
  else
    check_device(job.spec, *settings);
  if (job.spec.collectives.graphs)
    resolved["collectives.node_template"] =
        nccl_graph_in_place(settings->at("collectives.node_template"), near);
  write_config(*settings, std::move(resolved), job);
  return job;
}

LoadedJob load_cluster_job(const std::string& base, const std::vector<std::string>& overrides) {
  YamlValue root = parse_yaml(base, std::make_shared<Source>(Source{"default", "default", false}));
  apply_environment(root);
  for (const std::string& text : overrides) apply_override(root, text);
  expand_cluster(root, "");
  std::vector<Key> keys;
  std::copy_if(job_keys().begin(), job_keys().end(), std::back_inserter(keys),
               [](const Key& key) { return !is_about_training(key); });
  const Settings settings(root, keys, "job without a model");
  LoadedJob job;
  read_setting(settings, "", job.spec);
  write_config(settings, {}, job);
  return job;
}

}  // namespace ghostrank
