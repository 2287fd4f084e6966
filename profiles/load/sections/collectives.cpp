// See load/sections/collectives.h.
#include "profiles/load/sections/collectives.h"

#include <algorithm>

#include "profiles/algorithms/algorithms.h"
#include "profiles/error.h"
#include "profiles/load/sections/collective_options.h"

namespace ghostrank {
namespace {

void load_plugins(const Setting& plugins, const std::string& near, Algorithms& out) {
  if (!plugins.raw) return;
  if (!plugins.raw->is_list())
    fail(plugins.mark, "collectives.plugins is a list of paths, as in [mine.so]");
  for (const YamlValue& path : plugins.raw->children) {
    if (!path.is_scalar()) fail(path.mark, "a plugin is a path; found " + description(path));
    try {
      out.load_plugin(path.text, near);
    } catch (const Error& error) {
      fail(path.mark, error.what());
    }
  }
}

void check_library(const Setting& library, const Algorithms& own) {
  const std::vector<std::string> known = own.libraries();
  if (std::find(known.begin(), known.end(), library.text) != known.end()) return;
  const std::string near = nearest(library.text, known);
  fail(library.mark,
       "collectives.library is " + quote(library.text) +
           (near.empty() ? "; allowed: " + join(known, ", ") : "; did you mean " + near + "?"));
}

// The library that a name belongs to.
std::string library_of(const std::string& name, const std::string& library) {
  const std::size_t slash = name.find('/');
  return slash == std::string::npos ? library : name.substr(0, slash);
}

bool serves_another(const std::string& library, Func func, const std::string& name,
                    const Algorithms& own) {
  for (int f = 0; f < kFuncs; ++f)
    if (const auto other = static_cast<Func>(f); other != func && own.find(library, other, name))
      return true;
  return false;
}

void check_algorithm(const Setting& name, const std::string& library, Func func,
                     const std::string& near, Algorithms& own) {
  if (Algorithms::names_file(name.text)) {
    try {
      own.resolve(library, func, name.text, near);
    } catch (const Error& error) {
      fail(name.mark, error.what());
    }
    return;
  }
  // A library may lack a function: only jobs that call the function are refused, later.
  if (name.text == "auto" || own.find(library, func, name.text)) return;
  std::vector<std::string> known = own.names(library_of(name.text, library), func);
  for (const std::string& scheme : own.names(kSchemes, func))
    if (scheme != known.front()) known.push_back(scheme);
  const bool of_others = serves_another(library, func, name.text, own);
  const std::string nearby = of_others ? "" : nearest(name.text, known);
  fail(name.mark,
       std::string(name.key->path) + " is " + quote(name.text) +
           (of_others ? ", which has no " + std::string(name_of(func)) : "") +
           (nearby.empty() ? "; allowed: " + join(known, ", ") : "; did you mean " + nearby + "?"));
}

Func function_named(const YamlValue& entry) {
  std::vector<std::string> known;
  for (int f = 0; f < kFuncs; ++f) {
    const auto func = static_cast<Func>(f);
    known.emplace_back(name_of(func));
    if (known.back() == entry.key) return func;
  }
  const std::string near = nearest(entry.key, known);
  fail(entry.key_mark,
       quote(entry.key) + " is no operation" +
           (near.empty() ? "; known are " + join(known, ", ") : "; did you mean " + near + "?"));
}

// {dp: {allreduce: ring, all_gather: auto}}
void read_groups(const Setting& groups, const std::string& near, Algorithms& own,
                 CollectiveSpec& out) {
  const char* example = "{dp: {allreduce: ring}}";
  const YamlValue* map = mapping_of(groups, example);
  if (!map) return;
  for (const YamlValue& group : map->children) {
    if (!group.is_map())
      fail(group.mark, "group " + quote(group.key) + " is " + description(group) +
                           "; write a mapping, as in " + example);
    for (const YamlValue& entry : group.children) {
      const Func func = function_named(entry);
      if (!entry.is_scalar())
        fail(entry.mark,
             entry.key + " is " + description(entry) + "; write the name of an algorithm");
      const std::string path = "collectives.groups." + group.key + "." + entry.key;
      const Key key{path, KeyType::string};
      check_algorithm({&key, true, entry.mark, entry.text}, out.library, func, near, own);
      out.groups[group.key][func] = entry.text;
    }
  }
}

void read_switch(const Settings& in, CollectiveSpec& out) {
  out.in_switch.slots = in.small("switch.slots");
  out.in_switch.packet_elements = std::stoi(in.text("switch.packet_elements"));
  if (in.text("switch.timeout_us") != "auto")
    out.in_switch.timeout_ps = in.micros("switch.timeout_us");
  out.in_switch.fallback_ps = in.micros("switch.fallback_after_us");
  out.in_switch.memory_slots = in.small("switch.memory_slots");
  out.in_switch.trees = in.small("switch.trees");
  out.in_switch.trees_per_port = in.text("switch.trees_of") == "port";
  out.in_switch.packet_rate = 1e6 * in.number("switch.packet_rate_mpps");
}

void read_omnireduce(const Settings& in, CollectiveSpec& out) {
  OmniReduceSpec& spec = out.omnireduce;
  spec.block = in.small("omnireduce.block");
  spec.packets = in.text("omnireduce.carriage") == "packets";
  spec.columns = spec.packets ? 1 : in.small("omnireduce.columns");
  spec.slots = in.small("omnireduce.slots");
  spec.timeout_ps = in.micros("omnireduce.timeout_us");
}

}  // namespace

CollectiveSpec read_collectives(const Settings& in, const std::string& near) {
  CollectiveSpec out;
  auto own = std::make_shared<Algorithms>();
  load_plugins(in.at("collectives.plugins"), near, *own);
  check_library(in.at("collectives.library"), *own);
  out.library = in.text("collectives.library");
  for (int f = 0; f < kFuncs; ++f) {
    const auto func = static_cast<Func>(f);
    const Setting& name = in.at(algorithm_key(func));
    check_algorithm(name, out.library, func, near, *own);
    out.algorithm(func) = name.text;
  }
  read_groups(in.at("collectives.groups"), near, *own, out);
  out.own = std::move(own);
  read_switch(in, out);
  read_omnireduce(in, out);
  out.channels = in.small("collectives.channels");
  out.slice_bytes = static_cast<std::uint64_t>(in.number("collectives.slice"));
  out.credits = static_cast<std::uint32_t>(in.integer("collectives.credits"));
  out.protocol = in.text("collectives.protocol");
  out.max_channels = in.small("collectives.max_channels");
  out.node_template = in.text("collectives.node_template");
  const std::string cpu = in.text("collectives.node_cpu");
  if (cpu != "auto") out.node_cpu = cpu == "amd" ? NcclCpu::amd : NcclCpu::intel;
  read_library_environment(in.at("collectives.environment"), out);
  read_nccl_graphs(in.at("collectives.node_template"), near, out);
  return out;
}

const Algorithm* CollectiveSpec::row(Func func, const std::string& group) const {
  const std::string& name = algorithm(func, group);
  if (!own) return Algorithms().find(library, func, name);
  const Algorithm* found = own->find(library, func, name);
  // A plugin may lack functions that a job calls: then generic's play them.
  const bool lacks = !found && name == "auto" && own->is_plugin(library);
  return lacks ? find_algorithm("generic", func, "auto") : found;
}

}  // namespace ghostrank
