#include "tools/verbs/quiet_play.h"

#include "emulator/control/control.h"
#include "emulator/engine.h"
#include "profiles/error.h"
#include "tools/watch/outcome.h"

namespace ghostrank {

Result play_quietly(const LoadedJob& job, const Workload& workload) {
  const std::unique_ptr<Control> control = meet(World{}, job.spec.run);
  Observer observer;
  Result result = run_job(job, workload, *control, {}, observer);
  control->close();
  if (!result.interrupted.empty()) throw Error(result.interrupted, ErrorKind::environment);
  return result;
}

}  // namespace ghostrank
