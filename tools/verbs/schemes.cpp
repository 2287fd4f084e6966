// ghostrank schemes: what can play each collective. Lists every algorithm with a schedule and every
// scheme with agents, by operation, element type and fabric, with the reasons of refusals.
#include <array>
#include <cstdio>
#include <map>
#include <optional>
#include <stdexcept>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "collectives/agent.h"
#include "collectives/wire_format.h"
#include "profiles/algorithms/algorithms.h"
#include "profiles/error.h"
#include "tools/report/files/output_files.h"
#include "tools/text/table.h"
#include "tools/verbs.h"

namespace ghostrank {
namespace {

using nlohmann::ordered_json;

constexpr int kRanks = 8;  // of the communicator that we ask about
constexpr std::array<std::string_view, 4> kFabrics{"memory", "virtual", "ofi", "packets"};
constexpr std::size_t kModelled = 2;  // of these, the first ones

struct Operation {
  Func func;
  std::vector<DataType> served;
  std::vector<std::pair<DataType, std::string>> refused;  // with the reason
};

struct Scheme {
  std::string library, name;
  bool agents = false;
  bool needs_copies = false;  // by the network, which a modelled one makes
  std::vector<Operation> operations;
  std::size_t helpers = 0;
  // The scheme's own wire format and P4 program; empty: it has none of its own.
  std::string wire_format, p4_program;
  std::optional<Survives> survives;  // only of schemes that send packets

  std::span<const std::string_view> fabrics() const {
    return std::span(kFabrics).first(needs_copies ? kModelled : kFabrics.size());
  }
};

// How the agents of a communicator answer a call of every type.
Operation ask(const Ends& ends, Func func) {
  Operation operation{func, {}, {}};
  for (int t = 0; t < kDataTypes; ++t) {
    const auto type = static_cast<DataType>(t);
    const Call call{0, {func, kRanks, 1024, bytes_of(type), 0}, type};
    std::string why = ends.refuses(call);
    if (why.empty())
      operation.served.push_back(type);
    else
      operation.refused.emplace_back(type, std::move(why));
  }
  return operation;
}

bool sends_packets(const Ends& ends, const Operation& operation) {
  if (operation.served.empty()) return false;
  const DataType type = operation.served.front();
  for (const Ends::Edge& edge :
       ends.traffic({0, {operation.func, kRanks, 1024, bytes_of(type), 0}, type}))
    if (edge.carriage == Carriage::packet) return true;
  return false;
}

// Why the row makes no schedule: neither with one rank per node, nor with several, nor inside
// one node.
std::string why_no_schedule(const Algorithm& row, DataType type) {
  std::string why;
  for (const auto& [nodes, per_node] :
       {std::pair{kRanks, 1}, std::pair{1, kRanks}, std::pair{2, kRanks}}) {
    const int ranks = nodes * per_node;
    Collective c{row.func, ranks, 1024, bytes_of(type), 0};
    if (is_ragged(row.func))
      c.counts = std::make_shared<const std::vector<std::uint64_t>>(counts_needed(row.func, ranks),
                                                                    c.count);
    Communicator comm;
    comm.channels = 0;  // as many as the library chooses
    for (int r = 0; r < ranks; ++r) comm.node_of.push_back(r / per_node);
    try {
      row.make(c, comm);
      return "";
    } catch (const std::invalid_argument& error) {
      why = error.what();
    }
  }
  return why;
}

void add_row(const Algorithm& row, Scheme& scheme) {
  if (!row.ends) {
    Operation operation{row.func, {}, {}};
    for (int t = 0; t < kDataTypes; ++t) {
      const auto type = static_cast<DataType>(t);
      std::string why = why_no_schedule(row, type);
      if (why.empty())
        operation.served.push_back(type);
      else
        operation.refused.emplace_back(type, std::move(why));
    }
    scheme.operations.push_back(std::move(operation));
    return;
  }
  scheme.agents = true;
  std::unique_ptr<Ends> ends;
  try {
    Communicator comm;
    comm.at_servers.places = 1;
    ends = row.ends(kRanks, comm);
  } catch (const std::invalid_argument& error) {
    Operation operation{row.func, {}, {}};
    for (int t = 0; t < kDataTypes; ++t)
      operation.refused.emplace_back(static_cast<DataType>(t), error.what());
    scheme.operations.push_back(std::move(operation));
    return;
  }
  scheme.operations.push_back(ask(*ends, row.func));
  scheme.helpers = ends->helpers().size();
  scheme.needs_copies = ends->needs_copies();
  if (ends->wire_format()) scheme.wire_format = ends->wire_format()->name();
  scheme.p4_program = ends->p4_program();
  if (sends_packets(*ends, scheme.operations.back())) scheme.survives = ends->survives();
}

std::vector<Scheme> all_schemes(const Algorithms& algorithms) {
  std::vector<Scheme> schemes;
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  for (const std::string& library : algorithms.libraries())
    for (int f = 0; f < kFuncs; ++f)
      for (const std::string& name : algorithms.names(library, static_cast<Func>(f))) {
        if (name == "auto") continue;
        const Algorithm* row = algorithms.find(library, static_cast<Func>(f), name);
        const auto [at, fresh] = known.try_emplace({library, name}, schemes.size());
        if (fresh) schemes.push_back({library, name});
        add_row(*row, schemes[at->second]);
      }
  return schemes;
}

template <typename List, typename Text>
std::string joined(const List& list, const Text& text) {
  std::string all;
  for (const auto& one : list) all += (all.empty() ? "" : " ") + std::string(text(one));
  return all;
}

std::string type_text(const Operation& o) {
  if (std::ssize(o.served) == kDataTypes) return "all";
  if (o.served.empty()) return "none";
  return joined(o.served, [](DataType t) { return name_of(t); });
}

std::string survives_text(const Scheme& scheme) {
  if (!scheme.survives) return scheme.agents ? "sends none" : "-";
  const Survives& s = *scheme.survives;
  std::string text;
  for (const auto& [yes, name] :
       {std::pair(s.loss, "loss"), std::pair(s.duplicates, "duplicates"),
        std::pair(s.delay, "delay"), std::pair(s.reordering, "reordering")})
    if (yes) text += (text.empty() ? "" : " ") + std::string(name);
  return text.empty() ? "nothing" : text;
}

std::string table_of(const std::vector<Scheme>& schemes) {
  Table table{{{"scheme"}, {"by"}, {"operations"}, {"types"}, {"fabrics"}, {"packets survive"}},
              {}};
  std::string refusals, bundles;
  for (const Scheme& s : schemes) {
    const std::string name = s.library + "/" + s.name;
    if (!s.wire_format.empty())
      bundles +=
          "  " + name + "'s packets have a wire format of their own: " + s.wire_format + "\n";
    if (!s.p4_program.empty())
      bundles += "  " + name + "'s switch is played by a P4 program: " + s.p4_program + "\n";
    const std::string fabrics = joined(s.fabrics(), [](std::string_view f) { return f; });
    // Operations with the same types share a line.
    std::vector<std::pair<std::string, std::string>> lines;  // types, operations
    for (const Operation& o : s.operations) {
      const std::string types = type_text(o);
      if (lines.empty() || lines.back().first != types) lines.push_back({types, ""});
      lines.back().second +=
          (lines.back().second.empty() ? "" : " ") + std::string(name_of(o.func));
      for (const auto& [type, why] : o.refused)
        refusals += "  " + name + " refuses " + std::string(name_of(o.func)) + " of " +
                    std::string(name_of(type)) + ": " + why + "\n";
    }
    const std::string by = !s.agents        ? "schedule"
                           : s.helpers == 0 ? "agents"
                                            : "agents, " + std::to_string(s.helpers) +
                                                  (s.helpers == 1 ? " helper" : " helpers");
    for (std::size_t i = 0; i < lines.size(); ++i)
      table.rows.push_back({i == 0 ? name : "", i == 0 ? by : "", lines[i].second, lines[i].first,
                            i == 0 ? fabrics : "", i == 0 ? survives_text(s) : ""});
  }
  if (!bundles.empty()) bundles = "\n" + bundles;
  return render(table) + bundles + (refusals.empty() ? "" : "\n" + refusals);
}

std::string json_of(const std::vector<Scheme>& schemes) {
  ordered_json all = ordered_json::array();
  for (const Scheme& s : schemes) {
    ordered_json one{{"library", s.library}, {"name", s.name}};
    one["kind"] = s.agents ? "agents" : "schedule";
    one["helpers"] = s.helpers;
    if (!s.wire_format.empty()) one["wire_format"] = s.wire_format;
    if (!s.p4_program.empty()) one["p4_program"] = s.p4_program;
    for (const Operation& o : s.operations) {
      ordered_json types = ordered_json::array(), refused = ordered_json::array();
      for (const DataType t : o.served) types.push_back(name_of(t));
      for (const auto& [type, why] : o.refused)
        refused.push_back({{"type", name_of(type)}, {"reason", why}});
      one["operations"].push_back(
          {{"op", name_of(o.func)}, {"types", types}, {"refused", refused}});
    }
    for (const std::string_view fabric : s.fabrics()) one["fabrics"].push_back(fabric);
    one["survives"] = nullptr;
    if (s.survives)
      one["survives"] = {{"loss", s.survives->loss},
                         {"duplicates", s.survives->duplicates},
                         {"delay", s.survives->delay},
                         {"reordering", s.survives->reordering},
                         {"restart", s.survives->restart}};
    all.push_back(std::move(one));
  }
  return ordered_json{{"schema", "ghostrank/schemes/1"}, {"schemes", all}}.dump(1) + "\n";
}

}  // namespace

int verb_schemes(const Argv& argv) {
  std::string json, library;
  std::vector<std::string> plugins;
  CLI::App app(
      "Say what can play which collective: algorithms with a schedule and schemes with agents.",
      "ghostrank schemes");
  app.add_option("--library", library, "only those of this library");
  app.add_option("--plugin", plugins, "a shared object with rows of your own")->type_name("FILE");
  app.add_option("--json", json, "the same as JSON; - is stdout")
      ->type_name("FILE|-")
      ->group("Output");
  if (!parse(app, argv)) return 0;
  check_outputs({{"--json", json}});
  Algorithms algorithms;
  for (const std::string& plugin : plugins) algorithms.load_plugin(plugin, ".");
  std::vector<Scheme> schemes = all_schemes(algorithms);
  if (!library.empty()) {
    std::erase_if(schemes, [&](const Scheme& s) { return s.library != library; });
    if (schemes.empty())
      throw Error("there is no library '" + library + "'; 'ghostrank schemes' lists them all");
  }
  if (json != "-") std::fputs(table_of(schemes).c_str(), stdout);
  if (!json.empty()) write_whole(json, json_of(schemes));
  return 0;
}

}  // namespace ghostrank
