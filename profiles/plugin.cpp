// See plugin.h. The only file that sees dlopen.
#include "profiles/plugin.h"

#include <array>
#include <dlfcn.h>
#include <filesystem>
#include <stdexcept>
#include <utility>
#include <vector>

#include "collectives/checker.h"
#include "collectives/plugin.h"
#include "profiles/error.h"

namespace ghostrank {
namespace {

std::string shape_of(const Collective& c) {
  return std::to_string(c.size) + " ranks, count " + std::to_string(c.count) + ", root " +
         std::to_string(c.root);
}

// Blocks of unequal size, where the function has such.
Counts counts_of(const Collective& c) {
  if (!is_ragged(c.func)) return nullptr;
  std::vector<std::uint64_t> counts(counts_needed(c.func, c.size), c.count);
  for (std::size_t i = 0; i < counts.size(); i += 3) ++counts[i];
  return std::make_shared<const std::vector<std::uint64_t>>(std::move(counts));
}

// A row may refuse what it was not made for, but not everything.
void prove_row(const std::string& file, const Algorithm& row) {
  const std::string name = file + ": " + std::string(row.library) + "/" + std::string(row.name);
  std::string refused;
  bool proved = false;
  for (const int size : {1, 2, 3, 4, 5, 8}) {
    for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{7}, std::uint64_t{64}}) {
      Collective c{row.func, size, count, 4, size - 1};
      c.counts = counts_of(c);
      if (row.func == Func::send_recv && size < 2) continue;
      try {
        const std::unique_ptr<Schedule> schedule = row.make(c, Communicator{});
        if (!schedule) throw Error(name + " made no schedule for " + shape_of(c));
        const CheckReport report = check(*schedule);
        if (!report.ok) throw Error(name + " is wrong for " + shape_of(c) + ": " + report.error);
        proved = true;
      } catch (const std::invalid_argument& error) {
        refused = error.what();
      }
    }
  }
  if (!proved) throw Error(name + " refuses every size that was tried: " + refused);
}

void check_row(const std::string& file, const Algorithm& row) {
  const auto refuse = [&](const std::string& what) {
    throw Error(file + ": the row '" + std::string(row.library) + "/" + std::string(row.name) +
                "' " + what);
  };
  if (row.library.empty() || row.name.empty() || (!row.make && !row.ends))
    refuse("needs a library, a name and a make function");
  if (row.name == "auto" || row.name.find('/') != std::string_view::npos ||
      row.name.ends_with(".xml") || row.library.find('/') != std::string_view::npos)
    refuse("has a name that means something else; choose another");
  if (static_cast<int>(row.func) >= kFuncs) refuse("is for no collective");
  for (const Algorithm& own : registry())
    if (own.library == row.library) refuse("is in a library that is built in; choose another");
}

}  // namespace

std::span<const Algorithm> load_plugin_rows(const std::string& file) {
  // With a slash in it, so that dlopen() does not look elsewhere.
  void* object = dlopen(std::filesystem::absolute(file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!object)
    throw Error(file + ": cannot be loaded: " + dlerror() + "; is it a shared object, built here?");
  using Entry = const Plugin* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(object, kPluginSymbol));
  if (!entry) throw Error(file + ": is no plugin; write GHOSTRANK_PLUGIN(rows) at its end");
  const Plugin* plugin = entry();
  if (plugin->abi != PluginAbi{})
    throw Error(file +
                ": was built against another ghostrank or with another compiler; build it again "
                "against the headers of this one");
  const std::span<const Algorithm> rows(plugin->rows, plugin->count);
  for (const Algorithm& row : rows) check_row(file, row);
  for (const Algorithm& row : rows)
    if (row.make) prove_row(file, row);
  return rows;
}

}  // namespace ghostrank
