#include "profiles/load/sections/collective_options.h"

#include <stdexcept>

#include "collectives/nccl/environment.h"
#include "collectives/nccl/machine/templates.h"
#include "profiles/error.h"
#include "profiles/load/files/nccl_graph.h"
#include "profiles/load/files/nccl_topology.h"

namespace ghostrank {
namespace {

bool names_an_algorithm(const CollectiveSpec& spec, Func func) {
  if (spec.algorithm(func) != "auto") return true;
  for (const auto& [group, named] : spec.groups)
    if (const auto at = named.find(func); at != named.end() && at->second != "auto") return true;
  return false;
}

// Refuses variables that would have no effect beside another key.
void refuse_collisions(const Setting& environment, const CollectiveSpec& spec) {
  const auto refuse = [&](const char* variable, bool collides, const std::string& other) {
    if (collides && spec.environment.contains(variable))
      fail(environment.mark, std::string("collectives.environment has ") + variable +
                                 ", which has no effect beside " + other + "; leave out one");
  };
  refuse("NCCL_PROTO", spec.protocol != "auto", "collectives.protocol");
  for (const Func func :
       {Func::all_reduce, Func::reduce_scatter, Func::all_gather, Func::broadcast, Func::reduce})
    refuse("NCCL_ALGO", names_an_algorithm(spec, func),
           "an algorithm for collectives." + std::string(name_of(func)));
  for (const char* variable :
       {"NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_MIN_CTAS", "NCCL_MAX_CTAS"})
    refuse(variable, spec.channels != 0, "collectives.channels");
}

}  // namespace

const YamlValue* mapping_of(const Setting& setting, const char* example) {
  const YamlValue* raw = setting.raw;
  if (!raw || raw->kind == YamlValue::Kind::null) return nullptr;
  if (!raw->is_map())
    fail(setting.mark, std::string(setting.key->path) + " is " + description(*raw) +
                           "; write a mapping, as in " + example);
  return raw;
}

void read_library_environment(const Setting& environment, CollectiveSpec& out) {
  const YamlValue* map = mapping_of(environment, "{NCCL_ALGO: Ring}");
  if (!map) return;
  for (const YamlValue& entry : map->children) {
    if (!entry.is_scalar())
      fail(entry.mark, entry.key + " is " + description(entry) + "; write a value");
    try {
      nccl_settings({{entry.key, entry.text}});
    } catch (const std::invalid_argument& error) {
      fail(entry.mark, error.what());
    }
    out.environment[entry.key] = entry.text;
  }
  try {
    nccl_settings(out.environment);  // checks the variables against each other
  } catch (const std::invalid_argument& error) {
    fail(environment.mark, error.what());
  }
  refuse_collisions(environment, out);
}

void read_nccl_graphs(const Setting& node_template, const std::string& near, CollectiveSpec& out) {
  const std::string& name = node_template.text;
  const bool in_place = is_nccl_graph_text(name);
  if (!in_place && !is_nccl_graph_file(name)) {
    try {
      if (name != "auto") nccl_template(name);
    } catch (const std::invalid_argument& error) {
      fail(node_template.mark, error.what());
    }
    return;
  }
  const std::string text = nccl_graph_in_place(node_template, near).text;
  const std::string file = in_place ? "the XML in " + location(node_template.mark) : name;
  if (is_nccl_topology_text(text))
    out.machine = parse_nccl_topology(text, file);
  else
    out.graphs = parse_nccl_graphs(text, file);
  out.node_template = "auto";
}

void check_nccl_graphs(const Setting& node_template, const ClusterSpec& cluster,
                       const CollectiveSpec& collectives) {
  if (!collectives.graphs && !collectives.machine) return;
  const auto& graphs = collectives.graphs;
  const auto& machine = collectives.machine;
  const int gpus = graphs ? graphs->node.gpus : machine->gpu_count();
  const int nics = graphs ? graphs->node.nics : machine->nic_count();
  const auto demand_same = [&](const char* key, int ours, int theirs, const char* what) {
    if (ours != theirs)
      fail(node_template.mark, "the XML is of a node with " + std::to_string(theirs) + " " + what +
                                   ", " + key + " is " + std::to_string(ours) +
                                   "; make them agree");
  };
  demand_same("cluster.gpus_per_node", cluster.gpus_per_node, gpus, "GPUs");
  if (cluster.nodes > 1) demand_same("cluster.nics_per_node", cluster.nics_per_node, nics, "NICs");
}

YamlValue nccl_graph_in_place(const Setting& node_template, const std::string& near) {
  YamlValue value;
  value.kind = YamlValue::Kind::scalar;
  value.quoted = true;
  value.mark = node_template.mark;
  value.text = node_template.text;
  if (!is_nccl_graph_file(node_template.text)) return value;
  try {
    value.text = read_nccl_graph_file(node_template.text, near);
  } catch (const Error& error) {
    fail(node_template.mark, error.what());
  }
  return value;
}

}  // namespace ghostrank
