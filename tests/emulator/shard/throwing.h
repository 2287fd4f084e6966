// Jobs that throw in an engine thread, by the plug-in built from plugins/throws.cpp
// (GHOSTRANK_THROWS_PLUGIN).
#pragma once

#include "tests/emulator/plugins.h"
#include "tests/emulator/support.h"

namespace ghostrank::testing {

// The last rank's exception and when it is thrown; the numbers are those in plugins/throws.cpp.
enum class Throws : std::uint64_t { at_once = 1200, halfway, of_memory, something };

// Four nodes. The first iteration passes and the second throws; with at_once the first one throws.
inline SmallJob throwing_job(const char* plugin, FabricKind kind, Throws what) {
  SmallJob job(4, 1, kind);
  job.spec.collectives.own = load_plugins({plugin});
  job.spec.collectives.algorithm(Func::broadcast) = "throws/chain";
  job.spec.run.iterations = 3;
  job.collective(Func::broadcast, 6000);
  const Program well = job.program();
  job.program().streams[0] = {};
  job.collective(Func::broadcast, static_cast<std::uint64_t>(what));
  if (what != Throws::at_once)
    job.workload.roles[0].iterations.insert(job.workload.roles[0].iterations.begin(), well);
  return job;
}

}  // namespace ghostrank::testing
