// How a shared object made from one C++ file adds rows: algorithms, compressors (compressor.h),
// routings (routing.h), congestion controls (congestion_control.h) and server placements
// (server_placement.h).
//
//   #include "collectives/plugin.h"
//
//   namespace {
//   class MyRing final : public ghostrank::Schedule { ... };
//   const ghostrank::Algorithm kRows[]{{.library = "mine", .func = ghostrank::Func::all_reduce,
//                                       .name = "my-ring", .make = make_my_ring}};
//   }  // namespace
//   GHOSTRANK_PLUGIN(kRows)      // or several tables, one for each kind of row
//
// The loader compares PluginAbi first and reads nothing else if it differs: the interface consists
// of C++ types, so both sides must come from one release and one kind of compiler.
//
// Threading: constant data.
#pragma once

#include <cstdint>
#include <span>

#include "collectives/compressor.h"
#include "collectives/congestion_control.h"
#include "collectives/routing.h"
#include "collectives/schedule.h"
#include "collectives/server_placement.h"

namespace ghostrank {

// Raise it when a header that a plug-in includes changes in a way that the sizes below do not show.
inline constexpr std::uint32_t kScheduleAbi = 13;

struct PluginAbi {
  std::uint32_t schedule = kScheduleAbi;
  std::uint32_t compiler = __GXX_ABI_VERSION;
  std::uint32_t functions = kFuncs;
  std::uint32_t step_bytes = sizeof(Step);
  std::uint32_t schedule_bytes = sizeof(Schedule);
  std::uint32_t communicator_bytes = sizeof(Communicator);
  std::uint32_t algorithm_bytes = sizeof(Algorithm);
  bool operator==(const PluginAbi&) const = default;
};

struct Plugin {
  PluginAbi abi;  // first member, and never changed
  std::span<const Algorithm> algorithms;
  std::span<const Compressor> compressors;
  std::span<const Routing> routings;
  std::span<const CongestionControl> controls;
  std::span<const ServerPlacement> placements;

  void add(std::span<const Algorithm> table) { algorithms = table; }
  void add(std::span<const Compressor> table) { compressors = table; }
  void add(std::span<const Routing> table) { routings = table; }
  void add(std::span<const CongestionControl> table) { controls = table; }
  void add(std::span<const ServerPlacement> table) { placements = table; }

  template <typename... Tables>
  static Plugin of(const Tables&... tables) {
    Plugin plugin;
    (plugin.add(std::span(tables)), ...);
    return plugin;
  }
};

inline constexpr char kPluginSymbol[] = "ghostrank_plugin";

}  // namespace ghostrank

#define GHOSTRANK_PLUGIN(...)                                                                     \
  extern "C" __attribute__((visibility("default"))) const ghostrank::Plugin* ghostrank_plugin() { \
    static const ghostrank::Plugin plugin = ghostrank::Plugin::of(__VA_ARGS__);                   \
    return &plugin;                                                                               \
  }
