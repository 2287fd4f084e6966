// How a shared object made from one C++ file brings algorithms of its own:
//
//   #include "collectives/plugin.h"
//
//   namespace {
//   class MyRing final : public ghostrank::Schedule { ... };
//   const ghostrank::Algorithm kRows[]{{.library = "mine", .func = ghostrank::Func::all_reduce,
//                                       .name = "my-ring", .make = make_my_ring}};
//   }  // namespace
//   GHOSTRANK_PLUGIN(kRows)
//
// Whoever loads it compares PluginAbi first and reads nothing else where that differs: what crosses
// the border are C++ types, so both sides must come from one release and one kind of compiler.
//
// Threading: constant data.
#pragma once

#include <cstdint>
#include <span>

#include "collectives/schedule.h"

namespace ghostrank {

// To be raised whenever schedule.h or agent.h changes in a way that the sizes below do not show.
inline constexpr std::uint32_t kScheduleAbi = 2;

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
  PluginAbi abi;  // first, and of this form for ever
  const Algorithm* rows = nullptr;
  std::uint64_t count = 0;
};

inline constexpr char kPluginSymbol[] = "ghostrank_plugin";

}  // namespace ghostrank

#define GHOSTRANK_PLUGIN(table)                                                                   \
  extern "C" __attribute__((visibility("default"))) const ghostrank::Plugin* ghostrank_plugin() { \
    static const ghostrank::Plugin plugin{{}, std::data(table), std::size(table)};                \
    return &plugin;                                                                               \
  }
