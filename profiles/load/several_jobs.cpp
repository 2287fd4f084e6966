#include "profiles/load/several_jobs.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "profiles/algorithms/algorithms.h"
#include "profiles/error.h"
#include "profiles/input/keys.h"
#include "profiles/input/named_text.h"
#include "profiles/input/quantity.h"
#include "profiles/load/config.h"
#include "profiles/load/files/in_place.h"
#include "profiles/load/files/node_links.h"
#include "profiles/load/idle_keys.h"
#include "profiles/load/job_schema.h"
#include "profiles/load/locate.h"
#include "profiles/load/sections/events.h"
#include "profiles/load/tree.h"
#include "profiles/planners/background/background.h"
#include "profiles/planners/background/pattern.h"
#include "profiles/training/gradient_state.h"

namespace ghostrank {
namespace {

constexpr std::array kJobKeys{
    Key{"name", KeyType::string, kRequired, "unique; the first part of its groups' names"},
    Key{"file", KeyType::any, kRequired,
        "its job file, next to this one, or a name in profiles/jobs, or a mapping in place"},
    Key{"nodes", KeyType::any, kRequired,
        "its nodes of the cluster, in the order of its ranks: 0-7, '0-3,8', or a list of such"}};

constexpr std::size_t kMostJobs = 1000, kMostName = 64;

// Groups of keys that all jobs share: the outer file's values count, those of a job's file do not.
constexpr std::array<std::string_view, 10> kOfAll{"cluster",  "fabric", "run",       "scale",
                                                  "hosts",    "safety", "placement", "events",
                                                  "variants", "jobs"};
// Keys of the outer file that a job alone on its nodes has no use for: they speak of more nodes
// than it has, or of packets that only another job may send.
constexpr std::array<std::string_view, 3> kNotForOne{"cluster.topology.", "cluster.nic.rates",
                                                     "fabric.packets."};
// Groups of the outer file that no job inherits.
constexpr std::array<std::string_view, 4> kOfOuter{"jobs", "variants", "background", "events"};
// Groups that every job has for itself; a job inherits the outer file's values.
constexpr std::array<std::string_view, 5> kOfEach{"collectives.", "servers.", "tensors.",
                                                  "omnireduce.", "switch."};
// Keys on which jobs with servers, or with schemes, must agree, because they share the machines.
constexpr std::array<std::string_view, 6> kServer{"servers.nics",           "servers.nic.",
                                                  "servers.cores",          "servers.add_GBps",
                                                  "servers.optimizer_GBps", "servers.memory_GBps"};
constexpr std::array<std::string_view, 4> kSwitch{"switch.memory_slots", "switch.packet_rate_mpps",
                                                  "switch.fails_at_us", "switch.away_us"};
constexpr std::array<std::string_view, 2> kTrees{"switch.trees", "switch.trees_of"};
// Groups that only a single job may have.
constexpr std::array<std::string_view, 3> kAlone{"training.", "servers.fails",
                                                 "compression.budget_ms"};

bool in_group(std::string_view path, std::string_view group) {
  return group.back() == '.' ? path.starts_with(group)
                             : path == group || path.starts_with(std::string(group) + ".");
}

template <std::size_t n>
bool in_any(std::string_view path, const std::array<std::string_view, n>& groups) {
  return std::any_of(groups.begin(), groups.end(),
                     [&](std::string_view group) { return in_group(path, group); });
}

// One entry of `jobs`.
struct Entry {
  std::string name;
  const YamlValue* file = nullptr;
  Mark file_mark, nodes_mark;
  std::vector<int> nodes;
};

std::string read_name(const Settings& in, const std::vector<Entry>& before) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  const std::string& name = in.text("name");
  const Mark& mark = in.at("name").mark;
  if (name.empty() || name.size() > kMostName ||
      name.find_first_not_of(kLetters) != std::string::npos)
    fail(mark, "jobs: " + quote(name) + " is no name; write letters, digits, '_' and '-'");
  for (const Entry& other : before)
    if (other.name == name) fail(mark, "jobs: two are called " + name + "; give each its own name");
  return name;
}

std::vector<int> read_nodes(const Setting& nodes, const std::string& job, int cluster) {
  std::vector<int> out;
  const auto add = [&](const YamlValue& value) {
    const auto some = value.is_scalar() ? parse_number_list(value.text, cluster - 1) : std::nullopt;
    if (!some)
      fail(value.mark, "jobs: nodes of " + job + ": " +
                           (value.is_scalar() ? quote(value.text) : description(value)) +
                           " names no nodes of the cluster, which has 0-" +
                           std::to_string(cluster - 1) +
                           "; write 0-7, '0-3,8', or a list of such in the order of the ranks");
    out.insert(out.end(), some->begin(), some->end());
  };
  if (!nodes.raw->is_list()) add(*nodes.raw);
  if (nodes.raw->is_list())
    for (const YamlValue& one : nodes.raw->children) add(one);
  if (out.empty()) fail(nodes.mark, "jobs: " + job + " has no nodes; name one at least");
  std::vector<int> sorted = out;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end())
    fail(nodes.mark, "jobs: " + job + " has node " + std::to_string(*twice) + " twice");
  return out;
}

// Refuses a node that an earlier job has.
void check_apart(const Entry& entry, const std::vector<Entry>& before) {
  for (const Entry& other : before)
    for (const int node : entry.nodes)
      if (std::find(other.nodes.begin(), other.nodes.end(), node) != other.nodes.end())
        fail(entry.nodes_mark, "jobs: node " + std::to_string(node) + " of " + entry.name +
                                   " is one of " + other.name + " (" + location(other.nodes_mark) +
                                   "); a node has one job");
}

std::vector<Entry> read_entries(const Setting& jobs, int cluster) {
  if (!jobs.raw->is_list() || jobs.raw->children.empty() || jobs.raw->children.size() > kMostJobs)
    fail(jobs.mark, "jobs is " + description(*jobs.raw) + "; write a list of 1 to " +
                        std::to_string(kMostJobs) +
                        " jobs, as in [{name: a, file: a.yaml, nodes: 0-7}]");
  std::vector<Entry> out;
  for (const YamlValue& value : jobs.raw->children) {
    const Settings in(value, kJobKeys, "job in jobs");
    Entry entry;
    entry.name = read_name(in, out);
    entry.file = in.at("file").raw;
    entry.file_mark = in.at("file").mark;
    entry.nodes_mark = in.at("nodes").mark;
    entry.nodes = read_nodes(in.at("nodes"), entry.name, cluster);
    check_apart(entry, out);
    out.push_back(std::move(entry));
  }
  return out;
}

// Refuses keys that the outer file of several jobs cannot have.
void check_outer(const Settings& outer) {
  const auto refuse = [&](std::string_view path, const std::string& why) {
    fail(outer.at(path).mark, std::string(path) + ": " + why);
  };
  if (!outer.given("cluster.nodes"))
    fail(outer.at("jobs").mark,
         "jobs: the cluster has no number of nodes; add cluster.nodes, of which each job has some");
  if (outer.number("cluster.storage_nodes") > 0)
    refuse("cluster.storage_nodes", "several jobs have no storage nodes; leave it out");
  const std::string& kind = outer.text("fabric.kind");
  if (kind != "memory" && kind != "virtual")
    refuse("fabric.kind", kind + " does not play several jobs; use memory or virtual");
  if (outer.text("scale.mode") == "slice")
    refuse("scale.mode", "slice is of one job; leave out jobs, or use dilate");
  if (outer.number("run.min_seconds") > 0)
    refuse("run.min_seconds", "several jobs play run.iterations; leave it out");
  for (const std::string_view key : {"run.duration", "run.until.ci95_percent"})
    if (outer.given(key) && outer.text(key) != "0" && !outer.text(key).empty())
      refuse(key, "several jobs play run.iterations; leave it out");
  if (outer.given("hosts") && outer.text("hosts") != "[]")
    refuse("hosts", "several jobs are played by one process; leave it out");
}

struct JobFile {
  YamlValue tree;
  std::string path;  // of the file, or of the outer one
};

JobFile read_file(const Entry& entry, const std::string& outer) {
  JobFile out{*entry.file, outer};
  if (!out.tree.is_map() && (!out.tree.is_scalar() || out.tree.text.empty()))
    fail(entry.file_mark, "jobs: file of " + entry.name + " is " + description(out.tree) +
                              "; write the path of a job file, or a mapping with its keys");
  if (out.tree.is_scalar()) {
    const std::string name = out.tree.text,
                      beside = (std::filesystem::path(folder_of(outer)) / name).string();
    std::error_code ignored;
    try {
      out.path = std::filesystem::exists(beside, ignored) ? beside : find_job_file(name);
    } catch (const Error& error) {
      fail(entry.file_mark, std::string("jobs: ") + error.what());
    }
    out.tree = read_job_tree(out.path);
  }
  if (!out.tree.is_map())
    fail(out.tree.mark, "a job is a mapping of keys; found " + description(out.tree));
  if (const YamlValue* jobs = out.tree.find("jobs"))
    fail(jobs->key_mark, "jobs: one of several jobs has no jobs of its own; name them in " + outer);
  return out;
}

void set_nodes(YamlValue& tree, std::size_t count, const Mark& mark) {
  YamlValue nodes;
  nodes.kind = YamlValue::Kind::scalar;
  nodes.text = std::to_string(count);
  nodes.mark = mark;
  set_path(tree, "cluster.nodes", std::move(nodes));
}

// Rewrites the path of a file that was found in the folder `from` for a file in the folder `to`. A
// path that is found from the folder of the command stays, as does one that names no file.
void move_path(std::string& path, const std::string& from, const std::string& to) {
  namespace fs = std::filesystem;
  if (from == to) return;
  const std::string file = file_named(path, from);
  if (!file.empty() && file != path) path = fs::proximate(file, to.empty() ? "." : to).string();
}

// The same for all files that a part of `collectives` names: `key` is that part's own.
void move_paths(YamlValue& value, std::string_view key, const std::string& from,
                const std::string& to) {
  for (YamlValue& child : value.children)
    move_paths(child, value.is_map() ? child.key : key, from, to);
  if (value.is_scalar() && (key == "plugins" || Algorithms::names_file(value.text)))
    move_path(value.text, from, to);
}

bool is_one_file(const std::string& a, const std::string& b, const std::string& near) {
  std::error_code ignored;
  return a == b || std::filesystem::equivalent(file_named(a, near), file_named(b, near), ignored);
}

// Adds the plugins of a job's own file, which is in the folder `near`, to those beside `jobs`.
YamlValue with_own_plugins(YamlValue outer, const YamlValue& job, const std::string& near) {
  const YamlValue* collectives = job.find("collectives");
  const YamlValue* own = collectives ? collectives->find("plugins") : nullptr;
  if (!own || !outer.is_list()) return outer;
  if (!own->is_list()) return *own;  // refused later
  YamlValue all = *own;
  for (YamlValue& plugin : outer.children)
    if (std::none_of(own->children.begin(), own->children.end(), [&](const YamlValue& other) {
          return is_one_file(other.text, plugin.text, near);
        }))
      all.children.push_back(std::move(plugin));
  return all;
}

// Returns the job as if it were alone on its number of nodes. Appends to `unused` the groups of its
// file that the outer file replaces.
JobFile alone(const Entry& entry, const Settings& outer, const std::string& outer_file,
              std::vector<std::string>& unused) {
  JobFile out = read_file(entry, outer_file);
  const std::string near = folder_of(out.path);
  std::erase_if(out.tree.children, [&](const YamlValue& group) {
    const bool drop = std::find(kOfAll.begin(), kOfAll.end(), group.key) != kOfAll.end();
    if (drop) unused.push_back(group.key);
    return drop;
  });
  for (const Setting& setting : outer.all()) {
    const std::string path(setting.key->path);
    if (!setting.given || path == "schema" || in_any(path, kOfOuter)) continue;
    if (in_any(path, kNotForOne)) continue;
    YamlValue value = *setting.raw;
    if (in_group(path, "collectives"))
      move_paths(value, setting.key->path.substr(path.rfind('.') + 1), folder_of(outer_file), near);
    if (path == "collectives.plugins") value = with_own_plugins(std::move(value), out.tree, near);
    set_path(out.tree, path, std::move(value));
  }
  set_nodes(out.tree, entry.nodes.size(), entry.nodes_mark);
  return out;
}

const Key& row_of(const std::string& path) {
  return *std::find_if(job_keys().begin(), job_keys().end(),
                       [&](const Key& key) { return key.path == path; });
}

// Refuses a pattern between ranks and storage nodes.
void check_no_storage(const Background& one, const std::string& whose) {
  if (is_stored(one.pattern))
    throw Error(one.source + ": background of " + whose + ": pattern: " + name_of(one.pattern) +
                " goes to storage nodes, and several jobs have none; use incast, permutation or "
                "bisection, or leave it out");
}

// Refuses keys and features that a job cannot have beside other jobs.
void check_job(const Entry& entry, const LoadedJob& job) {
  for (const ConfigEntry& one : job.entries)
    if (in_any(one.path, kAlone) && one.value != row_of(one.path).standard &&
        job.spec.sources.contains(one.path))
      throw Error(job.spec.source_of(one.path) + ": " + one.path + ": job " + entry.name +
                  " has it, and only a job that has the fabric for itself may; leave it out");
  for (const Background& one : job.spec.background) check_no_storage(one, "job " + entry.name);
  if (job.spec.parallel.tune)
    throw Error(job.spec.source_of("parallel.tune") + ": parallel.tune: job " + entry.name +
                " is tuned alone: run it by itself, then write what was found");
  if (job.spec.run.verify && carries_gradients(job.spec))
    throw Error(job.spec.source_of("run.verify") + ": run.verify: job " + entry.name +
                " carries from step to step what its compression leaves out, which is verified for "
                "a job alone; use compression.memory: none, or do not verify");
}

bool has_servers(const LoadedJob& job) {
  const ClusterSpec& cluster = job.spec.cluster;
  return cluster.servers.places(cluster.rank_nodes()) > 0;
}

// Refuses keys of some groups in which the last job differs from the first one that `uses` them.
template <std::size_t n>
void check_agreement(const std::vector<Entry>& entries, const std::vector<LoadedJob>& jobs,
                     const std::array<std::string_view, n>& groups,
                     bool (*uses)(const LoadedJob&)) {
  const LoadedJob& job = jobs.back();
  if (!uses(job)) return;
  std::size_t first = 0;
  while (!uses(jobs[first])) ++first;
  for (std::size_t i = 0; i < job.entries.size(); ++i) {
    const ConfigEntry &ours = jobs[first].entries[i], &theirs = job.entries[i];
    if (!in_any(ours.path, groups) || ours.value == theirs.value) continue;
    throw Error(job.spec.source_of(ours.path) + ": " + ours.path + " is " + theirs.value +
                " in job " + entries[jobs.size() - 1].name + " and " + ours.value + " in " +
                entries[first].name + " (" + jobs[first].spec.source_of(ours.path) +
                "); both use the same machines: give it once, beside jobs");
  }
}

bool has_schemes(const LoadedJob& job) { return !named_schemes(job.spec.collectives).empty(); }
bool has_trees(const LoadedJob& job) {
  return named_schemes(job.spec.collectives).contains("sharp");
}

// A job of a result or of --print-config: its file as a mapping in place, in a file of the folder
// `near`.
YamlValue in_place(const Entry& entry, const LoadedJob& job, const YamlValue& written,
                   const std::string& near) {
  YamlValue out = written;
  YamlValue file = parse_yaml(job.config_json, entry.file_mark.source);
  std::erase_if(file.children, [](const YamlValue& group) {
    return std::find(kOfAll.begin(), kOfAll.end(), group.key) != kOfAll.end();
  });
  if (YamlValue* collectives = file.find("collectives"))
    move_paths(*collectives, "", folder_of(job.spec.file), near);
  file.key = "file";
  *out.find("file") = std::move(file);
  return out;
}

std::string note_of_unused(const Entry& entry, const std::vector<std::string>& unused) {
  return "job " + entry.name + ": its own " + join(unused, ", ") + " " +
         (unused.size() == 1 ? "is" : "are") + " not used: all jobs have those beside jobs";
}

// The outer file without every job's own groups. Plugins stay, because they may have routings.
YamlValue outer_tree(const YamlValue& root) {
  YamlValue out = root;
  std::erase_if(out.children, [](const YamlValue& group) {
    if (in_any(group.key, kOfOuter) || group.key == "collectives") return false;
    return std::any_of(job_keys().begin(), job_keys().end(), [&](const Key& key) {
      return in_group(key.path, group.key) && (is_about_training(key) || in_any(key.path, kOfEach));
    });
  });
  if (YamlValue* collectives = out.find("collectives"))
    std::erase_if(collectives->children, [](const YamlValue& key) { return key.key != "plugins"; });
  return out;
}

// The keys that the outer file may have; shown_keys() are those that its config shows.
std::vector<Key> outer_keys() {
  std::vector<Key> keys = keys_without_training();
  for (const std::string_view path : kOfOuter) keys.push_back(row_of(std::string(path)));
  return keys;
}
std::vector<Key> shown_keys() {
  std::vector<Key> keys = outer_keys();
  std::erase_if(keys, [](const Key& key) {
    return in_any(key.path, kOfEach) && key.path != "collectives.plugins";
  });
  return keys;
}

// What the jobs bring to the outer file. Their dedicated servers are numbered job after job, on
// machines that are alike.
BesideJobs together(const std::vector<LoadedJob>& jobs) {
  BesideJobs out;
  bool fresh = true;
  int dedicated = 0;
  for (const LoadedJob& job : jobs) {
    out.schemes.merge(named_schemes(job.spec.collectives));
    if (!has_servers(job)) continue;
    if (std::exchange(fresh, false)) out.servers = job.spec.cluster.servers;
    dedicated += job.spec.cluster.server_nodes();
  }
  out.servers.count = dedicated;
  out.servers.colocated = false;
  out.servers.placement = nullptr;
  return out;
}

// ---- Background beside the jobs ----

// Nodes that no job has, ascending.
std::vector<int> idle_nodes(const std::vector<Entry>& entries, int cluster) {
  std::vector<bool> taken(static_cast<std::size_t>(cluster));
  for (const Entry& entry : entries)
    for (const int node : entry.nodes) taken[static_cast<std::size_t>(node)] = true;
  std::vector<int> idle;
  for (int node = 0; node < cluster; ++node)
    if (!taken[static_cast<std::size_t>(node)]) idle.push_back(node);
  return idle;
}

void check_beside(const std::vector<Background>& background, const std::vector<Entry>& entries,
                  std::size_t idle, const Mark& mark) {
  for (const Background& one : background) check_no_storage(one, "the file with jobs");
  if (idle < 2)
    fail(mark, "background: beside jobs it runs among the nodes that no job has, and there " +
                   std::string(idle == 0 ? "is none" : "is one") +
                   "; raise cluster.nodes by two or more, or put background into a job's file, "
                   "which plays it among that job's nodes");
  for (const Entry& entry : entries)
    if (entry.name == kBackgroundJob)
      fail(mark, "background: beside jobs it is called " + quote(entry.name) +
                     " in the result, and so is a job (" + location(entry.nodes_mark) +
                     "); give the job another name");
}

// The traffic among nodes that no job has, as a job that only sends
// (profiles/planners/background/background.h). Empty: there is none.
std::optional<JobOnNodes> beside_jobs(const Settings& outer, const std::string& near,
                                      const std::vector<Entry>& entries) {
  const Setting& given = outer.at("background");
  std::vector<Background> background = read_background(given);
  if (background.empty()) return std::nullopt;
  const std::vector<int> idle = idle_nodes(entries, outer.small("cluster.nodes"));
  check_beside(background, entries, idle.size(), given.mark);
  YamlValue tree;
  tree.kind = YamlValue::Kind::map;
  tree.mark = given.mark;
  const std::vector<Key> keys = keys_without_training();
  for (const Key& key : keys)
    if (outer.given(key.path) && !in_any(key.path, kNotForOne) && !in_any(key.path, kOfEach))
      set_path(tree, std::string(key.path), *outer.at(key.path).raw);
  set_nodes(tree, idle.size(), given.mark);
  auto spec = std::make_shared<JobSpec>();
  read_setting(Settings(tree, keys, "background"), near, *spec);
  spec->background = std::move(background);
  spec->model_name = "traffic";
  JobOnNodes out{std::string(kBackgroundJob), {}, std::move(spec), location(given.mark)};
  for (const int node : idle) out.nodes.emplace_back(node);
  return out;
}

}  // namespace

LoadedJob load_jobs(YamlValue root, const std::string& file) {
  const std::string near = folder_of(file);
  expand_cluster(root, near);
  complete_node_links(root);
  const Settings given(root, job_keys(), "job");
  check_outer(given);
  const std::vector<Entry> entries = read_entries(given.at("jobs"), given.small("cluster.nodes"));

  std::vector<LoadedJob> jobs;
  std::vector<std::string> notes;
  for (const Entry& entry : entries) {
    std::vector<std::string> unused;
    JobFile own = alone(entry, given, file, unused);
    jobs.push_back(load_tree(std::move(own.tree), own.path));
    check_job(entry, jobs.back());
    check_agreement(entries, jobs, kServer, has_servers);
    check_agreement(entries, jobs, kSwitch, has_schemes);
    check_agreement(entries, jobs, kTrees, has_trees);
    if (!unused.empty()) notes.push_back(note_of_unused(entry, unused));
    for (const std::string& note : jobs.back().spec.notes)
      notes.push_back("job " + entry.name + ": " + note);
  }

  const YamlValue outer = outer_tree(root);
  const std::vector<Key> keys = outer_keys(), shown = shown_keys();
  const Settings in(outer, keys, "job");
  LoadedJob out;
  JobSpec& spec = out.spec;
  const BesideJobs of_jobs = together(jobs);
  read_setting(in, near, spec, &of_jobs);
  spec.file = file;
  spec.device = jobs.front().spec.device;
  for (const LoadedJob& job : jobs)
    if (has_schemes(job)) spec.network_switch = job.spec.network_switch;
  spec.variants = read_variants(in.at("variants"));
  spec.notes.insert(spec.notes.end(), notes.begin(), notes.end());

  YamlValue resolved = *in.at("jobs").raw;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    resolved.children[j] = in_place(entries[j], jobs[j], resolved.children[j], near);
    JobOnNodes one{entries[j].name, {}, nullptr, location(entries[j].nodes_mark)};
    for (const int node : entries[j].nodes) one.nodes.emplace_back(node);
    one.job = std::make_shared<const JobSpec>(std::move(jobs[j].spec));
    spec.jobs.push_back(std::move(one));
  }
  if (std::optional<JobOnNodes> traffic = beside_jobs(in, near, entries)) {
    spec.background = traffic->job->background;
    spec.jobs.push_back(std::move(*traffic));
  }
  for (const JobOnNodes& one : spec.jobs)
    spec.cluster.node_of_block.insert(spec.cluster.node_of_block.end(), one.nodes.begin(),
                                      one.nodes.end());
  spec.events = read_events(in.at("events"), spec);
  const Settings said(outer, shown, "job");
  std::map<std::string, YamlValue> in_place_of{{"jobs", std::move(resolved)}};
  put_files_in_place(said, near, in_place_of);
  write_config(said, std::move(in_place_of), out);
  return out;
}

}  // namespace ghostrank
