// See plugin.h. The only file of profiles that sees dlopen.
#include "profiles/algorithms/plugin.h"

#include <array>
#include <cmath>
#include <dlfcn.h>
#include <filesystem>
#include <stdexcept>
#include <utility>
#include <vector>

#include "collectives/check/agents/checker.h"
#include "collectives/check/checker.h"
#include "collectives/common/dice.h"
#include "collectives/plugin.h"
#include "profiles/error.h"
#include "profiles/input/files_read.h"

namespace ghostrank {
namespace {

std::string shape_of(const Collective& c) {
  return std::to_string(c.size) + " ranks, count " + std::to_string(c.count) + ", root " +
         std::to_string(c.root);
}

// Unequal counts for a v-variant; null for other functions.
Counts counts_of(const Collective& c) {
  if (!is_ragged(c.func)) return nullptr;
  std::vector<std::uint64_t> counts(counts_needed(c.func, c.size), c.count);
  for (std::size_t i = 0; i < counts.size(); i += 3) ++counts[i];
  return std::make_shared<const std::vector<std::uint64_t>>(std::move(counts));
}

// Outcome of one call. `refused`: why the row refused it; empty if it did not.
struct Proof {
  bool made = false;
  std::string error, refused;
};

Proof prove_schedule(const Algorithm& row, const Collective& c) {
  const std::unique_ptr<Schedule> schedule = row.make(c, Communicator{});
  if (!schedule) return {};
  return {true, check(*schedule).error, ""};
}

// Each play uses another data type and another order of events; some include the faults that the
// scheme claims to survive.
constexpr int kPlays = 20;

Proof prove_scheme(const Algorithm& row, const Collective& c) {
  const std::unique_ptr<Ends> ends = row.ends(c.size, Communicator{});
  if (!ends) return {};
  const AgentProof proof = prove(*ends, c, kPlays);
  return {true, proof.report.error, proof.plays == 0 ? proof.refused : ""};
}

Proof prove_call(const Algorithm& row, const Collective& c) {
  try {
    return row.make ? prove_schedule(row, c) : prove_scheme(row, c);
  } catch (const std::invalid_argument& error) {
    return {true, "", error.what()};
  }
}

// A row may refuse some calls, but not all of them.
void prove_row(const std::string& file, const Algorithm& row) {
  const std::string name = file + ": " + std::string(row.library) + "/" + std::string(row.name);
  std::string refused;
  bool proved = false;
  for (const int size : {1, 2, 3, 4, 5, 8}) {
    for (const std::uint64_t count : {1, 7, 64, 1000}) {
      if (row.func == Func::send_recv && size < 2) continue;
      if (row.make && count > 64) continue;  // larger counts repeat the schedule
      Collective c{row.func, size, count, 4, size - 1};
      c.counts = counts_of(c);
      const Proof proof = prove_call(row, c);
      if (!proof.made)
        throw Error(name + " made " + (row.make ? "no schedule" : "no agents") + " for " +
                    shape_of(c));
      if (!proof.error.empty())
        throw Error(name + " is wrong for " + shape_of(c) + ": " + proof.error);
      if (proof.refused.empty())
        proved = true;
      else
        refused = proof.refused;
    }
  }
  if (!proved) throw Error(name + " refuses every size that was tried: " + refused);
}

void check_row(const std::string& file, const Algorithm& row) {
  const auto refuse = [&](const std::string& what) {
    throw Error(file + ": the row '" + std::string(row.library) + "/" + std::string(row.name) +
                "' " + what);
  };
  if (row.library.empty() || row.name.empty()) refuse("needs a library and a name");
  if (!row.make == !row.ends)
    refuse("needs either a make function, of schedules, or an ends function, of agents");
  if (row.name == "auto" || row.name.find('/') != std::string_view::npos ||
      row.name.ends_with(".xml") || row.library.find('/') != std::string_view::npos)
    refuse("has a name that means something else; choose another");
  if (static_cast<int>(row.func) >= kFuncs) refuse("is for no collective");
  for (const Algorithm& own : registry())
    if (own.library == row.library) refuse("is in a library that is built in; choose another");
}

void prove_compressor(const std::string& file, const Compressor& row) {
  const std::string wrong = why_wrong(row);
  if (!wrong.empty())
    throw Error(file + ": the compressor '" + std::string(row.name) + "' is wrong: " + wrong);
}

// Checks that a row of another kind than an algorithm has a name and a function.
template <typename Function>
void check_named(const std::string& file, const char* kind, std::string_view name,
                 Function* function) {
  if (name.empty() || !function)
    throw Error(file + ": the " + kind + " '" + std::string(name) +
                "' needs a name and a function");
}

// The path chosen must be below `paths`, and the same when asked twice.
void prove_routing(const std::string& file, const Routing& row) {
  check_named(file, "routing", row.name, row.choose);
  for (std::uint32_t n = 0; n < 64; ++n) {
    RoutedFlow flow{.source_nic = Nic(n * 7 % 60),
                    .target_nic = Nic(n * 11 % 60),
                    .nics_per_node = 4,
                    .hash = n * 0x9e3779b97f4a7c15ULL,
                    .number = row.per == Routing::Per::connection ? 0 : n + 1,
                    .paths = n % 8 + 1,
                    .first_hops = n % 8 + 1,
                    .target_place = n * 11 % 60};
    const std::uint32_t chosen = row.choose(flow);
    if (chosen >= flow.paths)
      throw Error(file + ": the routing '" + std::string(row.name) + "' chose path " +
                  std::to_string(chosen) + " of " + std::to_string(flow.paths) +
                  "; they are counted from 0");
    if (row.choose(flow) != chosen)
      throw Error(file + ": the routing '" + std::string(row.name) +
                  "' chose two paths for the same flow; it must be a pure function of it");
  }
}

// Two senders that are told the same must go at the same rates, numbers above 0.
void prove_control(const std::string& file, const CongestionControl& row) {
  check_named(file, "congestion control", row.name, row.make);
  const auto refuse = [&](const std::string& what) {
    throw Error(file + ": the congestion control '" + std::string(row.name) + "' " + what);
  };
  constexpr double kNicRate = 0.0125;  // 100 Gb/s
  const auto one = row.make(kNicRate), other = row.make(kNicRate);
  if (!one || !other) refuse("made no sender");
  checking::Dice dice(1);
  Picoseconds now = 0;
  for (int n = 0; n < 10'000; ++n) {
    now += static_cast<Picoseconds>(dice.below(1'000'000));
    const PacketAnswer answer{1 + static_cast<Picoseconds>(dice.below(100'000'000)),
                              dice.happens(0.2)};
    const std::uint64_t bytes = 1 + dice.below(9000), event = dice.below(100);
    for (SenderRate* sender : {one.get(), other.get()}) {
      if (event < 50)
        sender->on_sent(bytes, now);
      else if (event < 99)
        sender->on_answer(answer, now);
      else
        sender->on_loss(now);
    }
    const double rate = one->rate();
    if (!(rate > 0))
      refuse("slows a sender down to " + std::to_string(rate) +
             " bytes per picosecond; rates are above 0");
    if (other->rate() != rate)
      refuse(
          "gives two senders different rates for the same packets; a rate must follow from what "
          "its sender is told alone");
  }
}

void prove_placement(const std::string& file, const ServerPlacement& row) {
  check_named(file, "placement", row.name, row.place);
  const std::vector<std::int32_t> nodes{0, 0, 1, 2};
  for (int n = 0; n < 64; ++n) {
    const ServerSites sites{3 + n % 3, 1 + n % 4, 1 + n % 5, 1 + n % 2};
    const PlacedHelper helper{.number = n, .index = n % 3, .nodes = nodes};
    const std::string wrong = why_no_location(row.place(helper, sites), row, sites);
    if (!wrong.empty())
      throw Error(file + ": the placement '" + std::string(row.name) + "' " + wrong);
  }
}

}  // namespace

const Plugin& load_plugin_file(const std::string& file) {
  // An absolute path has a slash, so dlopen() does not search elsewhere.
  void* object = dlopen(std::filesystem::absolute(file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!object)
    throw Error(file + ": cannot be loaded: " + dlerror() + "; is it a shared object, built here?");
  note_read(file);
  using Entry = const Plugin* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(object, kPluginSymbol));
  if (!entry) throw Error(file + ": is no plugin; write GHOSTRANK_PLUGIN(rows) at its end");
  const Plugin* plugin = entry();
  if (plugin->abi != PluginAbi{})
    throw Error(file +
                ": was built against another ghostrank or with another compiler; build it again "
                "against the headers of this one");
  for (const Algorithm& row : plugin->algorithms) check_row(file, row);
  for (const Algorithm& row : plugin->algorithms) prove_row(file, row);
  for (const Compressor& row : plugin->compressors) prove_compressor(file, row);
  for (const Routing& row : plugin->routings) prove_routing(file, row);
  for (const CongestionControl& row : plugin->controls) prove_control(file, row);
  for (const ServerPlacement& row : plugin->placements) prove_placement(file, row);
  return *plugin;
}

}  // namespace ghostrank
