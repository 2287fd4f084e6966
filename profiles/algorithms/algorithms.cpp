// See algorithms.h.
#include "profiles/algorithms/algorithms.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "profiles/algorithms/msccl_file.h"
#include "profiles/algorithms/plugin.h"
#include "profiles/error.h"
#include "profiles/input/content_hash.h"
#include "profiles/input/input_file.h"
#include "profiles/input/keys.h"
#include "profiles/input/named_text.h"

namespace ghostrank {
namespace {

constexpr std::uint64_t kMostBytes = 256u << 20;

std::string read_whole(const std::string& path) {
  return read_input(path, "give an algorithm of MSCCL", kMostBytes);
}

// Cost of one call: each step that sends is one message.
Cost cost_of(const MscclAlgorithm& algorithm, int rounds, const Collective& c) {
  const std::uint64_t chunks = chunks_per_block(algorithm);
  const std::uint64_t chunk_elements = (c.count + chunks - 1) / chunks;
  Cost cost{rounds, 0, 0};
  for (const MscclRank& rank : algorithm.ranks)
    for (const MscclThreadblock& tb : rank.threadblocks)
      for (const MscclStep& step : tb.steps) {
        if (!sends(step.op)) continue;
        ++cost.messages;
        cost.bytes +=
            message_bytes(algorithm.protocol, step.count * chunk_elements, c.element_bytes);
      }
  return cost;
}

Algorithm row_of(const std::shared_ptr<const MscclAlgorithm>& algorithm, const std::string& name,
                 int rounds) {
  // The row's `name` refers to the key of its map node, so both live equally long; see load_file().
  Algorithm row;
  row.library = "msccl";
  row.func = algorithm->func;
  row.name = name;
  row.make = [algorithm, name](const Collective& c, const Communicator& comm) {
    try {
      return msccl_schedule(algorithm, c, comm);
    } catch (const std::invalid_argument& why) {
      throw std::invalid_argument(name + ": " + why.what());
    }
  };
  row.cost = [algorithm, rounds](const Collective& c) { return cost_of(*algorithm, rounds, c); };
  return row;
}

// The built-in rows, then those of plugins.
template <typename Row>
std::vector<const Row*> with_own(std::span<const Row> built_in,
                                 const std::vector<const Row*>& plugins) {
  std::vector<const Row*> all;
  for (const Row& row : built_in) all.push_back(&row);
  all.insert(all.end(), plugins.begin(), plugins.end());
  return all;
}

// Adds a plugin's rows of one kind; throws Error if a name is taken.
template <typename Row>
void take_rows(const std::string& file, const char* kind, std::span<const Row> built_in,
               std::span<const Row> rows, std::vector<const Row*>& out) {
  for (const Row& row : rows) {
    for (const Row* known : with_own(built_in, out))
      if (known->name == row.name)
        throw Error(file + ": there is a " + kind + " '" + std::string(row.name) +
                    "' already; rename one of them");
    out.push_back(&row);
  }
}

bool is_named(const Algorithm& row, std::string_view library, Func func, std::string_view name) {
  return row.library == library && row.func == func && (name == "auto" || row.name == name);
}

}  // namespace

std::string find_file(const std::string& path, const std::string& folder) {
  if (std::string found = file_named(path, folder); !found.empty()) return found;
  throw Error(path + ": there is no such file, neither here nor in " +
              (folder.empty() ? "." : folder));
}

void Algorithms::note_content(const std::string& name, std::string_view content) {
  contents_ += name + " " + std::to_string(content_hash(content)) + "\n";
}

void Algorithms::load_plugin(const std::string& path, const std::string& folder) {
  const std::string file = find_file(path, folder);
  const Plugin& plugin = load_plugin_file(file);
  for (const Algorithm& row : plugin.algorithms) {
    if (find(row.library, row.func, row.name))
      throw Error(file + ": there is a " + std::string(row.library) + "/" + std::string(row.name) +
                  " already; rename one of them");
    plugin_rows_.push_back(row);
  }
  take_rows(file, "compressor", ghostrank::compressors(), plugin.compressors, plugin_compressors_);
  take_rows(file, "routing", ghostrank::routings(), plugin.routings, plugin_routings_);
  take_rows(file, "congestion control", ghostrank::congestion_controls(), plugin.controls,
            plugin_controls_);
  take_rows(file, "placement", server_placements(), plugin.placements, plugin_placements_);
  note_content(path, read_whole(file));
}

void Algorithms::load_file(const std::string& name, const std::string& folder) {
  if (files_.contains(name)) return;
  const std::string file = find_file(name, folder);
  const std::string text = read_whole(file);
  const auto algorithm = std::make_shared<const MscclAlgorithm>(parse_msccl(text, file));
  const MscclProof proof = prove_msccl(algorithm, file);
  const auto entry = files_.emplace(name, Algorithm{}).first;
  entry->second = row_of(algorithm, entry->first, proof.rounds);
  note_content(name, text);
}

const Algorithm* Algorithms::find(std::string_view library, Func func,
                                  std::string_view name) const {
  if (names_file(name)) {
    const auto found = files_.find(name);
    return found != files_.end() && found->second.func == func ? &found->second : nullptr;
  }
  if (const std::size_t slash = name.find('/'); slash != std::string_view::npos) {
    library = name.substr(0, slash);
    name = name.substr(slash + 1);
  }
  if (const Algorithm* row = find_algorithm(library, func, name)) return row;
  for (const Algorithm& row : plugin_rows_)
    if (is_named(row, library, func, name)) return &row;
  return nullptr;
}

std::vector<const Compressor*> Algorithms::compressors() const {
  return with_own(ghostrank::compressors(), plugin_compressors_);
}

std::vector<const Routing*> Algorithms::routings() const {
  return with_own(ghostrank::routings(), plugin_routings_);
}

std::vector<const CongestionControl*> Algorithms::congestion_controls() const {
  return with_own(ghostrank::congestion_controls(), plugin_controls_);
}

std::vector<const ServerPlacement*> Algorithms::placements() const {
  return with_own(server_placements(), plugin_placements_);
}

bool Algorithms::is_plugin(std::string_view library) const {
  return std::any_of(plugin_rows_.begin(), plugin_rows_.end(),
                     [&](const Algorithm& row) { return row.library == library; });
}

std::vector<std::string> Algorithms::libraries() const {
  std::vector<std::string> list;
  const auto add = [&](std::string_view name) {
    if (std::find(list.begin(), list.end(), name) == list.end()) list.emplace_back(name);
  };
  for (const Algorithm& row : registry()) add(row.library);
  for (const Algorithm& row : plugin_rows_) add(row.library);
  return list;
}

std::vector<std::string> Algorithms::names(std::string_view library, Func func) const {
  std::vector<std::string> list{"auto"};
  for (const Algorithm& row : registry())
    if (is_named(row, library, func, "auto")) list.emplace_back(row.name);
  for (const Algorithm& row : plugin_rows_)
    if (is_named(row, library, func, "auto")) list.emplace_back(row.name);
  return list;
}

const Algorithm& Algorithms::resolve(const std::string& library, Func func, const std::string& name,
                                     const std::string& folder) {
  if (names_file(name)) {
    load_file(name, folder);
    const Algorithm& row = files_.find(name)->second;
    if (row.func != func)
      throw Error(name + ": is an algorithm for " + std::string(name_of(row.func)) + ", not for " +
                  std::string(name_of(func)));
    return row;
  }
  if (const Algorithm* row = find(library, func, name)) return *row;
  const std::size_t slash = name.find('/');
  const std::string where = slash == std::string::npos ? library : name.substr(0, slash);
  const std::string wanted = slash == std::string::npos ? name : name.substr(slash + 1);
  const std::vector<std::string> known = names(where, func);
  if (known.size() == 1) {
    const std::vector<std::string> all = libraries();
    const bool exists = std::find(all.begin(), all.end(), where) != all.end();
    const std::string why(why_absent(where, func));
    throw Error(exists ? "library '" + where + "' has no " + std::string(name_of(func)) +
                             (why.empty() ? "" : "; " + why)
                       : "there is no library '" + where + "'; known are " + join(all, ", "));
  }
  const std::string near = nearest(wanted, known);
  throw Error("library '" + where + "' has no " + std::string(name_of(func)) + " algorithm '" +
              wanted + "'; " +
              (near.empty() ? "it has: " + join(known, ", ") : "did you mean " + near + "?"));
}

}  // namespace ghostrank
