#include "tools/quiet_play.h"

#include "emulator/control/control.h"
#include "emulator/engine.h"
#include "profiles/error.h"
#include "tools/switching/job_switch.h"
#include "tools/watch/outcome.h"

namespace ghostrank {

Result play_quietly(const LoadedJob& job, const Workload& workload) {
  const std::unique_ptr<Control> control = meet(World{}, job.spec.run);
  Observer observer;
  const std::unique_ptr<JobSwitch> network_switch = JobSwitch::start(job.spec, *control);
  RunOptions options;
  options.network_switch = network_switch.get();
  Result result = run_job(job, workload, *control, options, observer);
  control->close();
  if (!result.interrupted.empty()) throw Error(result.interrupted, ErrorKind::environment);
  return result;
}

}  // namespace ghostrank
