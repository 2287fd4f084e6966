// See job_collectives.h.
#include "profiles/job_collectives.h"

#include <algorithm>

#include "profiles/algorithms.h"
#include "profiles/error.h"

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

// The library that a name is looked up in.
std::string library_of(const std::string& name, const std::string& library) {
  const std::size_t slash = name.find('/');
  return slash == std::string::npos ? library : name.substr(0, slash);
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
  // A library may lack the function altogether; that matters only to jobs that call it.
  if (name.text == "auto" || own.find(library, func, name.text)) return;
  std::vector<std::string> known = own.names(library_of(name.text, library), func);
  const std::string nearby = nearest(name.text, known);
  fail(name.mark,
       std::string(name.key->path) + " is " + quote(name.text) +
           (nearby.empty() ? "; allowed: " + join(known, ", ") : "; did you mean " + nearby + "?"));
}

// What a library does not know of is refused, not ignored.
void refuse_foreign_settings(const Settings& in, const CollectiveSpec& spec) {
  const bool nccl = spec.library.starts_with("nccl-");
  const bool rules = spec.library == "gloo" || spec.library.starts_with("openmpi-");
  const auto refuse = [&](const char* key, bool given, const std::string& why) {
    if (given)
      fail(in.at(key).mark, std::string(key) + " means nothing to library " + spec.library + why);
  };
  const std::string only_nccl = ": it belongs to nccl-2.28 and nccl-2.30; leave it out";
  const std::string own_rules = ", which has rules of its own for it; leave it out";
  refuse("collectives.protocol", !nccl && spec.protocol != "auto", only_nccl);
  refuse("collectives.max_channels", !nccl && spec.max_channels != 0, only_nccl);
  refuse("collectives.node_template", !nccl && spec.node_template != "auto", only_nccl);
  refuse("collectives.slice", (nccl || rules) && spec.slice_bytes != 0, own_rules);
  refuse("collectives.credits", (nccl || rules) && spec.credits != 0, own_rules);
  refuse("collectives.channels", rules && spec.channels != 0, own_rules);
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
  out.own = std::move(own);
  out.channels = in.small("collectives.channels");
  out.slice_bytes = static_cast<std::uint64_t>(in.number("collectives.slice"));
  out.credits = static_cast<std::uint32_t>(in.integer("collectives.credits"));
  out.protocol = in.text("collectives.protocol");
  out.max_channels = in.small("collectives.max_channels");
  out.node_template = in.text("collectives.node_template");
  refuse_foreign_settings(in, out);
  return out;
}

const Algorithm* CollectiveSpec::row(Func func) const {
  if (!own) return find_algorithm(library, func, algorithm(func));
  const Algorithm* found = own->find(library, func, algorithm(func));
  // A plugin need not bring every function that a job calls.
  const bool lacks = !found && algorithm(func) == "auto" && own->is_plugin(library);
  return lacks ? find_algorithm("generic", func, "auto") : found;
}

}  // namespace ghostrank
