// Loads a job: merges environment over file and -s flags over both, resolves profiles, checks every
// key, and returns values, entries with origins, and JSON.
#include "profiles/load/load.h"

#include <algorithm>
#include <iostream>
#include <iterator>

#include "profiles/algorithms/algorithms.h"
#include "profiles/device/device.h"
#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "profiles/job/framing.h"
#include "profiles/load/config.h"
#include "profiles/load/files/in_place.h"
#include "profiles/load/files/nic_rates.h"
#include "profiles/load/files/node_links.h"
#include "profiles/load/idle_keys.h"
#include "profiles/load/job_schema.h"
#include "profiles/load/locate.h"
#include "profiles/load/named_files.h"
#include "profiles/load/program_file.h"
#include "profiles/load/sections/collective_options.h"
#include "profiles/load/sections/collectives.h"
#include "profiles/load/sections/events.h"
#include "profiles/load/sections/hosts.h"
#include "profiles/load/sections/job_trace.h"
#include "profiles/load/sections/key_servers.h"
#include "profiles/load/sections/network.h"
#include "profiles/load/sections/parallel.h"
#include "profiles/load/sections/run.h"
#include "profiles/load/sections/slice.h"
#include "profiles/load/several_jobs.h"
#include "profiles/load/tree.h"
#include "profiles/model/model.h"
#include "profiles/planners/background/background.h"
#include "profiles/planners/compression/compression.h"
#include "profiles/planners/gradient_laws.h"
#include "profiles/planners/tensors.h"

namespace ghostrank {
namespace {

constexpr const char* kStandardInput = "standard input";

std::string read_all(std::istream& in) {
  std::string text;
  char block[1 << 16];
  while (in.read(block, sizeof block) || in.gcount() > 0) {
    text.append(block, static_cast<std::size_t>(in.gcount()));
    if (text.size() > kMaxYamlBytes) break;  // the parser will refuse it
  }
  return text;
}

// A job is loaded again with other overrides, but what comes in can be read only once.
YamlValue read_standard_input() {
  static const std::string text = read_all(std::cin);
  return parse_yaml(text, std::make_shared<Source>(Source{kStandardInput, kStandardInput, true}));
}

void read_cluster(const Settings& in, const std::string& near, ClusterSpec& out) {
  out.nodes = in.small("cluster.nodes");
  out.storage_nodes = in.small("cluster.storage_nodes");
  out.gpus_per_node = in.small("cluster.gpus_per_node");
  out.nics_per_node = in.small("cluster.nics_per_node");
  out.nic = {in.number("cluster.nic.rate"), in.micros("cluster.nic.latency_us")};
  out.intra_node = {in.number("cluster.intra_node.rate"),
                    in.micros("cluster.intra_node.latency_us")};
  out.links = read_node_links(in, near);
  out.servers.count = in.small("servers.count");
  out.servers.nics = in.small("servers.nics");
  out.servers.nic = {in.number("servers.nic.rate"), in.micros("servers.nic.latency_us")};
  out.servers.cores = in.small("servers.cores");
  out.servers.add_GBps = in.number("servers.add_GBps");
  out.servers.optimizer_GBps = in.number("servers.optimizer_GBps");
  out.servers.memory_GBps = in.number("servers.memory_GBps");
  out.servers.fails = in.small("servers.fails");
  out.servers.fails_at = in.micros("servers.fails_at_us");
  if (out.servers.nics > out.nics_per_node)
    fail(in.at("servers.nics").mark, "servers.nics: a server has at most as many NICs as a node (" +
                                         std::to_string(out.nics_per_node) +
                                         "); lower it, or raise cluster.nics_per_node");
  const std::int64_t ranks = std::int64_t{out.rank_nodes()} * out.gpus_per_node;
  if (ranks > kMaxRanks)
    fail(in.at("cluster.nodes").mark, "the cluster has " + std::to_string(ranks) +
                                          " GPUs; at most " + std::to_string(kMaxRanks) +
                                          " are supported, lower nodes");
}

// With flows per NIC or connection, as libraries have them, messages share frames only on request.
std::uint64_t read_frames(const Settings& in, FlowKind flows) {
  const Setting& frames = in.at("fabric.frames");
  if (frames.text == "off") return 0;
  if (frames.text == "auto") return flows == FlowKind::process ? 64 << 10 : 0;
  const std::optional<std::uint64_t> bytes = parse_size(frames.text);
  if (!bytes || *bytes < (1 << 10) || *bytes > (64 << 10))
    fail(frames.mark, "fabric.frames: " + quote(frames.text) +
                          " is neither auto nor off nor a size from 1KiB to 64KiB");
  return *bytes;
}

void read_fabric(const Settings& in, const Algorithms& own, FabricSpec& out) {
  for (const auto& [kind, word] : kFabricKinds)
    if (word == in.text("fabric.kind")) out.kind = kind;
  const std::string& network = in.text("fabric.network");
  if (out.kind == FabricKind::virtual_time)
    out.network = network == "flow"     ? NetworkModel::flow
                  : network == "packet" ? NetworkModel::packet
                                        : NetworkModel::loggp;
  out.queues = read_queues(in, own);
  out.provider = in.text("fabric.provider");
  out.bind = in.text("fabric.bind");
  const std::string& flows = in.text("fabric.flows");
  out.flows = flows == "nic"          ? FlowKind::nic
              : flows == "connection" ? FlowKind::connection
                                      : FlowKind::process;
  const std::string& colocated = in.text("fabric.colocated");
  out.colocated = colocated == "wire" && is_network(out.kind) ? Colocated::wire
                  : colocated == "model"                      ? Colocated::model
                                                              : Colocated::memory;
  out.frame_bytes = read_frames(in, out.flows);
  out.namespaces = in.text("fabric.namespaces");
  if (!out.namespaces.empty() && out.namespaces.find("{node}") == std::string::npos)
    fail(in.at("fabric.namespaces").mark,
         "fabric.namespaces: needs {node} in it, as in gr{node}: every emulated node has a "
         "namespace of its own");
  out.inside_node =
      in.text("fabric.inside_node") == "messages" ? InsideNode::messages : InsideNode::model;
  out.payload =
      in.text("fabric.payload") == "copied" ? PayloadMode::copied : PayloadMode::untouched;
  out.packets = {in.number("fabric.packets.loss"), in.number("fabric.packets.duplicates"),
                 in.number("fabric.packets.reordering"),
                 static_cast<std::uint32_t>(in.integer("fabric.packets.mtu"))};
  out.framing = read_framing(in, out.packets.mtu);
  out.queue_pairs = read_queue_pairs(in, own);
  out.dscp = read_dscp(in, out.kind);
}

constexpr const char* kFp8 = "fp8";

// DeepSpeed reduces gradients in the parameters' type unless its communication_data_type is given.
void read_precision(const Settings& in, Framework framework, Precision& out) {
  if (in.text("precision.parameters") == kFp8) {
    out.parameters = DataType::bfloat16;
    out.fp8 = Fp8{in.text("precision.fp8_recipe") == "tensorwise" ? Fp8Recipe::tensorwise
                                                                  : Fp8Recipe::delayed,
                  in.boolean("precision.tp_only_amax_red")};
  } else {
    out.parameters = *parse_data_type(in.text("precision.parameters"));
  }
  const std::string& gradients = in.text("precision.gradients");
  if (gradients != "auto")
    out.gradients = *parse_data_type(gradients);
  else
    out.gradients = is_zero(framework) ? out.parameters : DataType::float32;
  out.optimizer = in.text("precision.optimizer");
}

// A model described by its FLOPs needs a device that has a peak for its type.
void check_device(const JobSpec& spec, const Settings& in) {
  if (spec.model->measured) return;
  const Setting& device = in.at("device");
  if (!device.given)
    fail(in.at("model").mark, "the layers of " + quote(spec.model->name) +
                                  " have no measured times; add a device, as in device: h100-sxm");
  if (matmul_peak_tflops(spec.device, spec.precision) > 0) return;
  const Setting& type = in.at("precision.parameters");
  const bool lacks_others = spec.precision.fp8 && peak_tflops(spec.device, OperandType::fp8) > 0;
  fail(type.given ? type.mark : device.mark,
       "the device " + quote(spec.device.name) + " has no peak_tflops for " +
           (lacks_others ? "bf16, in which all but linear layers is" : type.text) +
           "; choose another precision.parameters");
}

// Only Megatron's linear layers are planned in fp8; programs may be written from such a plan.
void check_fp8(const JobSpec& spec, const Settings& in) {
  if (!spec.precision.fp8 || in.given("program")) return;
  const std::string framework(name_of(spec.parallel.framework));
  const std::string other = in.given("trace") ? "a trace"
                            : spec.parallel.framework != Framework::megatron
                                ? "framework " + framework
                                : "";
  if (other.empty()) return;
  fail(in.at("precision.parameters").mark,
       "precision.parameters: fp8 is played for linear layers of Megatron, not for " + other +
           "; use parallel.framework: megatron, or bf16");
}

void check_program_size(const JobSpec& spec, const Settings& in) {
  const int ranks = spec.cluster.rank_nodes() * spec.cluster.gpus_per_node;
  if (spec.program->ranks == ranks) return;
  fail(in.at("program").mark, "the program has " + std::to_string(spec.program->ranks) +
                                  " ranks but the cluster " + std::to_string(ranks) +
                                  " GPUs; they must be as many");
}

// Takes the types of parameters and gradients from a measured model where the job gives none.
bool take_dtype(YamlValue& root, const Model& model, const Settings& in) {
  if (!model.dtype) return false;
  bool taken = false;
  const auto take = [&](const std::string& key) {
    if (parse_data_type(in.text(key)) == model.dtype) return;
    YamlValue type;
    type.kind = YamlValue::Kind::scalar;
    type.text = name_of(*model.dtype);
    type.mark = in.at("model").mark;
    set_path(root, key, std::move(type));
    taken = true;
  };
  if (!in.given("precision.parameters")) take("precision.parameters");
  if (in.text("precision.gradients") == "auto") take("precision.gradients");
  return taken;
}

int gpus_of(const Settings& in, const std::string& near) {
  ClusterSpec cluster;
  read_cluster(in, near, cluster);
  return cluster.rank_nodes() * cluster.gpus_per_node;
}

// Refuses what is only played over a given number of iterations: ratios that follow the network,
// which are kept for each, and failures, whose time counts from the start of a segment.
void check_open_end(const Settings& in, const JobSpec& spec) {
  if (!spec.run.end.is_open()) return;
  const char* const key = spec.compression && spec.compression->adapts ? "compression.budget_ms"
                          : spec.cluster.servers.fails >= 0            ? "servers.fails"
                          : !spec.network_switch.fails_at.empty()      ? "switch.fails_at_us"
                                                                       : nullptr;
  if (!key) return;
  fail(in.at(key).mark,
       std::string(key) + " is played over a given number of iterations; leave out " +
           std::string(key_of_open_end(spec.run.end)) + ", and raise run.iterations");
}

JobSpec make_spec(const Settings& in, std::shared_ptr<const Model> model, const YamlValue* device,
                  const std::string& near) {
  JobSpec spec;
  spec.model = std::move(model);
  if (spec.model) spec.model_name = spec.model->name;
  if (device) spec.device = make_device(*device);
  spec.parallel = read_parallel(in);
  read_precision(in, spec.parallel.framework, spec.precision);
  check_fp8(spec, in);
  spec.background = read_background(in.at("background"));
  read_setting(in, near, spec);
  spec.compression = read_compression(in, *spec.collectives.own, spec.device, near);
  spec.gradients = read_gradient_laws(in, spec.model.get(), near);
  compress_at_servers(in, spec);
  if (in.text("training.task") == "logistic")
    spec.training = TrainingSpec{in.small("training.samples"), in.number("training.rate"),
                                 in.number("training.vote")};
  check_open_end(in, spec);
  spec.variants = read_variants(in.at("variants"));
  spec.events = read_events(in.at("events"), spec);
  if (spec.events && !spec.slice.empty())
    fail(in.at("events").mark,
         "events: a slice plays against a recording in which nothing happens; use scale.mode: "
         "dilate");
  return spec;
}

// True if the job gives the key another value than its default.
bool chosen(const Settings& in, std::string_view path) {
  const Setting& setting = in.at(path);
  return setting.given && setting.text != setting.key->standard;
}

// The settings of a job without a model; refers to `keys`.
Settings cluster_settings(const std::string& base, const std::vector<std::string>& overrides,
                          YamlValue& root, const std::vector<Key>& keys) {
  root = parse_yaml(base, std::make_shared<Source>(Source{"default", "default", false}));
  apply_environment(root);
  for (const std::string& text : overrides) apply_override(root, text);
  expand_cluster(root, "");
  complete_node_links(root);
  return Settings(root, keys, "job without a model");
}

}  // namespace

YamlValue read_job_tree(const std::string& path, NamedFiles* played) {
  YamlValue root = path == kStandardInput ? read_standard_input() : parse_yaml_file(path);
  const YamlValue* schema = root.find("schema");
  if (!schema || schema->text != kResultSchema) return root;
  YamlValue* config = root.find("config");
  if (!config || !config->is_map())
    fail(root.mark, "a result without a config cannot be replayed; give a job file");
  const NamedFiles files = files_played(root);
  find_files(*config, files, folder_of(path));
  if (played) *played = files;
  YamlValue job = std::move(*config);
  return job;
}

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

std::vector<JobVariant> read_variants(const Setting& setting) {
  std::vector<JobVariant> out;
  const YamlValue* map = mapping_of(setting, "{more-servers: 'servers.count=8'}");
  if (!map) return out;
  for (const YamlValue& one : map->children) {
    if (!one.is_scalar())
      fail(one.mark, "variant " + quote(one.key) + " is " + description(one) +
                         "; write settings as for -s, as in 'servers.count=8 run.seed=2'");
    out.push_back({one.key, one.text});
  }
  return out;
}

void read_setting(const Settings& in, const std::string& near, JobSpec& spec,
                  const BesideJobs* jobs) {
  read_cluster(in, near, spec.cluster);
  spec.collectives = read_collectives(in, near);
  read_key_servers(in, spec);
  spec.notes = idle_keys(in, spec, jobs ? jobs->schemes : named_schemes(spec.collectives));
  read_server_placement(in, *spec.collectives.own, spec.cluster.servers);
  settle_key_servers(in, spec);
  if (jobs) spec.cluster.servers = jobs->servers;
  read_topology(in, *spec.collectives.own, near, spec.cluster);
  read_tensors(in, near, spec);
  spec.last_density = in.number("tensors.last_density");
  if (in.text("tensors.embeddings") == "zipf") {
    spec.zipf = in.number("tensors.zipf_exponent");
    if (!spec.tensors)
      spec.tensors = Sparsity{1, static_cast<std::uint64_t>(in.integer("tensors.block"))};
  }
  check_nccl_graphs(in.at("collectives.node_template"), spec.cluster, spec.collectives);
  spec.hosts = read_hosts(in.at("hosts"), spec.cluster.nics_per_node);
  spec.slice = read_slice(in, spec.cluster.nodes);
  spec.placement =
      read_placement(in.at("placement"), spec.hosts, spec.cluster.all_nodes(), spec.slice, near);
  spec.dilation = in.number("scale.dilation");
  if (!spec.slice.empty() && spec.dilation == 0) spec.dilation = 1;
  read_fabric(in, *spec.collectives.own, spec.fabric);
  spec.cluster.nic_rates = read_nic_rates(in.at("cluster.nic.rates"), near, spec.cluster);
  read_network_switch(in, near, spec);
  read_run(in, spec.run);
  spec.max_nic_bps = read_max_rate(in.at("safety.max_rate_per_nic"));
  if (spec.fabric.network == NetworkModel::flow && spec.run.verify)
    fail(in.at("fabric.network").mark,
         "fabric.network: flow plays calls, not the messages whose data run.verify compares; use "
         "loggp");
  check_slice(in, spec, jobs != nullptr);
  for (const Setting& setting : in.all())
    if (setting.given) spec.sources.emplace(std::string(setting.key->path), location(setting.mark));
}

std::set<std::string_view> keys_that_say_more(const JobSpec& spec) {
  std::set<std::string_view> keys;
  if (spec.model && !spec.model->buckets.empty())
    keys = {"parallel.bucket_cap_mb", "parallel.first_bucket_mb"};
  if (spec.network_switch.target == SwitchTarget::external) keys.insert("switch.fallback_after_us");
  return keys;
}

void write_config(const Settings& in, std::map<std::string, YamlValue> resolved, LoadedJob& job) {
  job.entries = make_entries(in);
  if (!job.spec.placement.host_of_node.empty())
    resolved["placement"] =
        placement_lines(job.spec.placement, job.spec.hosts, in.at("placement").mark);
  job.config_json = make_config_json(in, resolved, keys_that_say_more(job.spec));
}

bool is_about_training(const Key& key) {
  for (const std::string_view group :
       {"model", "trace", "program", "device", "precision.", "parallel.", "compression.",
        "training.", "background", "tensors.distribution", "tensors.scale", "tensors.drift",
        "variants", "jobs", "events"}) {
    if (group.back() == '.' ? key.path.starts_with(group) : key.path == group) return true;
  }
  return false;
}

std::vector<Key> keys_without_training() {
  std::vector<Key> keys;
  std::copy_if(job_keys().begin(), job_keys().end(), std::back_inserter(keys),
               [](const Key& key) { return !is_about_training(key); });
  return keys;
}

LoadedJob load_job(const std::string& path, const std::vector<std::string>& overrides) {
  const std::string file = path == "-" ? kStandardInput : find_job_file(path);
  NamedFiles played;
  YamlValue root = read_job_tree(file, &played);
  if (!root.is_map()) fail(root.mark, "a job is a mapping of keys; found " + description(root));
  apply_environment(root);
  for (const std::string& text : overrides) apply_override(root, text);
  LoadedJob job =
      root.find("jobs") ? load_jobs(std::move(root), file) : load_tree(std::move(root), file);
  for (std::string& note : notes_of_changed(played, job)) job.spec.notes.push_back(std::move(note));
  return job;
}

LoadedJob load_tree(YamlValue root, const std::string& file) {
  const std::string near = folder_of(file);
  expand_cluster(root, near);
  complete_node_links(root);
  take_trace_profile(root, near);
  const auto program = take_program(root, file, near);

  auto settings = std::make_unique<Settings>(root, job_keys(), "job");
  const std::unique_ptr<JobTrace> trace = take_trace(root, near, gpus_of(*settings, near));
  std::map<std::string, YamlValue> resolved;
  for (const ProfileKind& kind : {kModelProfile, kDeviceProfile}) {
    const std::string name(kind.name);
    if (settings->given(name))
      resolved[name] = resolve_profile(*settings->at(name).raw, kind, near);
  }
  std::shared_ptr<const Model> model;
  if (settings->given("model"))
    model = std::make_shared<const Model>(make_model(resolved["model"]));
  else if (!program && !trace)
    fail(root.mark, "job has no model; add it: " + std::string(settings->at("model").key->doc));
  if (model && take_dtype(root, *model, *settings))
    settings = std::make_unique<Settings>(root, job_keys(), "job");

  LoadedJob job;
  job.spec =
      make_spec(*settings, model, settings->given("device") ? &resolved["device"] : nullptr, near);
  job.spec.file = file;
  job.spec.program = program;
  if (trace)
    replay_in_job(*trace, {settings->given("device"), chosen(*settings, "precision.parameters")},
                  job.spec);
  else if (program)
    check_program_size(job.spec, *settings);
  else
    check_device(job.spec, *settings);
  if (job.spec.collectives.graphs || job.spec.collectives.machine)
    resolved["collectives.node_template"] =
        nccl_graph_in_place(settings->at("collectives.node_template"), near);
  put_files_in_place(*settings, near, resolved);
  write_config(*settings, std::move(resolved), job);
  return job;
}

ClusterSize load_cluster_size(const std::string& base, const std::vector<std::string>& overrides) {
  YamlValue root;
  const std::vector<Key> keys = keys_without_training();
  const Settings settings = cluster_settings(base, overrides, root, keys);
  ClusterSize size{settings.small("cluster.gpus_per_node"), {}};
  if (settings.given("cluster.nodes")) size.nodes = settings.small("cluster.nodes");
  return size;
}

LoadedJob load_cluster_job(const std::string& base, const std::vector<std::string>& overrides) {
  YamlValue root;
  const std::vector<Key> keys = keys_without_training();
  const Settings settings = cluster_settings(base, overrides, root, keys);
  LoadedJob job;
  read_setting(settings, "", job.spec);
  if (!job.spec.slice.empty())
    fail(settings.at("scale.mode").mark,
         "scale.mode: slice is of a job; without one every node is played, so use dilate");
  std::map<std::string, YamlValue> resolved;
  put_files_in_place(settings, "", resolved);
  write_config(settings, std::move(resolved), job);
  return job;
}

}  // namespace ghostrank
