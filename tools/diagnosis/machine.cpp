// Whether the machines that played the run kept up, and what held them up.
#include <algorithm>

#include "tools/diagnosis/causes.h"
#include "tools/text/humane.h"

namespace ghostrank {
namespace {

constexpr double kBusy = 0.8, kHeldUp = 0.01;  // bounds of a faithful run

void find_lateness(const StepFigures& step, std::vector<Cause>& findings) {
  const Fidelity& f = step.run.result.fidelity;
  if (!step.run.judged || f.modelled || (f.faithful && f.critical_lateness < kLeastShare)) return;
  // The error is relative to the step without it.
  const double late = std::max(0.0, f.critical_lateness);
  Cause finding{"lateness",
                "this machine, which did not keep up",
                step.seconds * late / (1 + late),
                false,
                {},
                ""};
  if (!f.reason.empty()) finding.figures.push_back(f.reason);
  finding.figures.push_back("lateness p99 " + humane_seconds(f.lateness_us_p99 * 1e-6) + ", max " +
                            humane_seconds(f.lateness_us_max * 1e-6));
  std::string held = "loop busy " + humane_percent(f.loop_busy);
  if (f.run_queue_wait >= 0) held += ", held up " + humane_percent(f.run_queue_wait);
  if (f.queued >= 0) held += ", in the kernel's run queue " + humane_percent(f.queued);
  if (f.throttled > 0) held += ", throttled by a CPU quota " + humane_percent(f.throttled);
  finding.figures.push_back(held + ", rate error " + humane_percent(f.rate_error));
  if (f.throttled > kHeldUp)
    finding.remedy = "more of the CPU quota of its cgroup";
  else if (f.queued > kHeldUp)
    finding.remedy = "an idle machine: other programs used its cores";
  else if (f.loop_busy > kBusy)
    finding.remedy = "a larger scale.dilation, or more cores or hosts";
  else
    finding.remedy =
        "'ghostrank doctor' says what would make runs on a machine better; a larger "
        "scale.dilation needs less of it";
  findings.push_back(std::move(finding));
}

void find_stalls(const StepFigures& step, std::vector<Cause>& findings) {
  const Result& result = step.run.result;
  double seconds = 0, wall = 0;
  for (const StallReport& s : result.stalls) seconds += s.seconds, wall += s.wall_seconds;
  if (result.stalls.empty()) return;
  const auto stalls = static_cast<double>(result.stalls.size());
  findings.push_back(
      {"stalls",
       "stalls",
       seconds / iterations_played(result),
       false,
       {"nothing moved " + humane_count(stalls, "time") + ", for " + humane_seconds(wall) +
        " of wall time in all"},
       "the network or a host stood still: look at the counters of the interfaces, and at the "
       "hosts' logs"});
}

void find_switch(const StepFigures& step, std::vector<Cause>& findings) {
  const double busy = switch_busy(step.run.result);
  if (busy < kSaturated) return;
  Cause finding{"switch",
                "the switch that played (" + step.run.result.network_switch->target + ")",
                0,
                false,
                {"busy " + humane_percent(busy) + " of a core"},
                "a core of its own, or a larger scale.dilation"};
  add_resource(step, std::move(finding), busy, findings);
}

}  // namespace

double switch_busy(const Result& result) {
  const std::optional<SwitchReport>& sw = result.network_switch;
  if (!sw || !sw->processor_seconds || result.played_wall_seconds <= 0) return 0;
  return *sw->processor_seconds / result.played_wall_seconds;
}

void find_machine(const StepFigures& step, std::vector<Cause>& findings) {
  find_lateness(step, findings);
  find_stalls(step, findings);
  find_switch(step, findings);
}

}  // namespace ghostrank
