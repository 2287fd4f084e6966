// See diagnosis.h.
#include "tools/diagnosis/diagnosis.h"

#include <algorithm>
#include <cmath>

#include "profiles/median.h"
#include "tools/diagnosis/causes.h"
#include "tools/report/json/json.h"
#include "tools/report/run_report.h"
#include "tools/text/humane.h"

namespace ghostrank {
namespace {

double median_of(const Result& result, double IterationReport::*field) {
  std::vector<double> values;
  for (const IterationReport& i : result.iterations) values.push_back(i.*field);
  return median(std::move(values));
}

// Of a sample, scaled up to all.
double seconds_of_all(const Result& result) {
  return mean_seconds(result.iterations) * iterations_played(result);
}

std::optional<double> time_of_calls(const Result& result) {
  double seconds = 0;
  bool timed = false;
  for (const CollectiveReport& c : result.collectives) {
    if (c.seconds_median <= 0) continue;
    seconds += seconds_of_calls(c.bytes, c.algbw_GBps, c.seconds_median, c.calls);
    timed = true;
  }
  return timed ? std::optional(seconds) : std::nullopt;
}

StepLoad load_of(const StepFigures& step) {
  const Result& result = step.run.result;
  StepLoad load;
  load.seconds = step.seconds;
  load.compute_seconds = step.compute;
  load.waiting_seconds = step.waiting();
  for (const NicUse& use : step.nics) {
    double& busy = use.helper ? load.helper_busy : load.link_busy;
    busy = std::max(busy, use.busy.value_or(0));
  }
  if (result.network && !result.network->hottest.empty())
    load.link_busy = std::max(load.link_busy, result.network->hottest.front().utilisation);
  for (const ServerReport& s : result.servers)
    load.helper_busy = std::max(load.helper_busy, s.busy);
  load.collective_seconds = time_of_calls(result);
  load.kept_up = (result.fidelity.faithful || result.fidelity.modelled) &&
                 switch_busy(result) < kSaturated;  // a switch that played beside the ranks
  load.of_several_jobs = !result.jobs.empty();
  load.compresses = result.compression.has_value();
  return load;
}

StepFigures step_of(const StoredRun& run) {
  const Result& result = run.result;
  StepFigures step{run,
                   median_of(result, &IterationReport::seconds),
                   median_of(result, &IterationReport::compute_seconds),
                   median_of(result, &IterationReport::exposed_comm_seconds),
                   median_of(result, &IterationReport::bubble_seconds),
                   nic_setting(run),
                   {},
                   {}};
  const bool timed = result.jobs.empty();
  step.nics = nic_uses(result.nics, step.setting, timed ? step.seconds : 0, seconds_of_all(result));
  if (run.judged && !result.iterations.empty()) step.bottleneck = bottleneck_of(load_of(step));
  return step;
}

// Why nothing was found, or what the list does not say.
std::string nothing_of(const StepFigures& step, const std::vector<Cause>& findings) {
  if (step.run.result.iterations.empty()) return "nothing: no iteration was completed";
  if (step.seconds <= 0) return "nothing: the step takes no time";
  const bool only_compute =
      findings.size() == 1 && findings.front().key == "compute" && step.run.result.jobs.empty();
  if (only_compute)
    return "nothing but compute: all that ranks wait for takes less than " +
           humane_percent(kLeastShare) + " of the step";
  return findings.empty() ? "nothing: the result holds no figure that explains the step" : "";
}

std::string share_text(const Cause& finding, const Diagnosis& diagnosis) {
  const std::optional<double> share = share_of(finding, diagnosis);
  return share ? humane_percent(*share) : "";
}

}  // namespace

std::optional<double> share_of(const Cause& finding, const Diagnosis& diagnosis) {
  const double step = finding.of > 0 ? finding.of : diagnosis.step.value_or(0);
  return step > 0 ? std::optional(finding.seconds / step) : std::nullopt;
}

Diagnosis diagnose(const StoredRun& run) {
  const StepFigures step = step_of(run);
  Diagnosis diagnosis;
  if (!run.result.iterations.empty()) diagnosis.step = step.seconds;
  diagnosis.bottleneck = step.bottleneck;
  if (step.seconds > 0) {
    const bool several = !run.result.jobs.empty();
    for (void (*find)(const StepFigures&, std::vector<Cause>&) :
         {find_parts_of_step, find_network, find_servers})
      if (!several) find(step, diagnosis.findings);
    if (several) find_other_jobs(step, diagnosis.findings);
    find_machine(step, diagnosis.findings);
  }
  std::stable_sort(diagnosis.findings.begin(), diagnosis.findings.end(),
                   [](const Cause& a, const Cause& b) { return a.seconds > b.seconds; });
  diagnosis.nothing = nothing_of(step, diagnosis.findings);
  return diagnosis;
}

std::string bottleneck_text(const std::string& bottleneck) {
  if (bottleneck == "host-cpu") return "host-cpu: the run measured this machine";
  if (bottleneck == "latency")
    return "latency: no link's or server's bytes account for what ranks wait for";
  if (bottleneck == "link") return "link: a NIC, or a link of the fabric";
  if (bottleneck == "switch") return "switch: NICs or cores of servers, or a switch";
  return bottleneck.empty() ? "unknown" : bottleneck;
}

std::string diagnosis_text(const StoredRun& run, const Diagnosis& diagnosis, const Paint& paint) {
  const Result& result = run.result;
  const bool good = result.fidelity.modelled || result.fidelity.faithful;
  const std::string first = run.judged ? verdict(result) : kUnjudged;
  std::string text = (good ? paint.good(printable(first)) : paint.bad(printable(first))) + "\n\n";
  std::vector<Fact> facts;
  if (!run.stored.job.empty()) facts.push_back({"job", run.stored.job});
  if (diagnosis.step) facts.push_back({"step time", humane_seconds(*diagnosis.step)});
  if (!diagnosis.bottleneck.empty())
    facts.push_back({"bottleneck", bottleneck_text(diagnosis.bottleneck)});
  text += render(facts);
  const bool alone = facts.empty();  // what follows stands below the first line
  for (const Cause& f : diagnosis.findings) {
    const std::string share = share_text(f, diagnosis);
    text += "\n" + paint.bold(printable(f.what)) + ": " + (f.at_most ? "at most " : "") +
            humane_seconds(f.seconds) + (share.empty() ? "" : ", " + share + " of the step") + "\n";
    for (const std::string& figure : f.figures) text += "  " + printable(figure) + "\n";
    if (!f.remedy.empty()) text += "  -> " + printable(f.remedy) + "\n";
  }
  if (!diagnosis.nothing.empty()) text += (alone ? "" : "\n") + printable(diagnosis.nothing) + "\n";
  return text;
}

std::string diagnosis_json(const StoredRun& run, const Diagnosis& diagnosis) {
  Json findings = Json::array();
  for (const Cause& f : diagnosis.findings) {
    findings.push_back({{"finding", f.key},
                        {"what", f.what},
                        {"seconds", f.seconds},
                        {"share", or_null(share_of(f, diagnosis))},
                        {"at_most", f.at_most},
                        {"figures", f.figures},
                        {"remedy", f.remedy.empty() ? Json(nullptr) : Json(f.remedy)}});
  }
  const Fidelity& fidelity = run.result.fidelity;
  return dump(
      {{"schema", "ghostrank/diagnosis/1"},
       {"result", run.stored.file},
       {"job", run.stored.job},
       {"faithful", run.judged ? Json(fidelity.faithful) : Json(nullptr)},
       {"modelled", run.judged ? Json(fidelity.modelled) : Json(nullptr)},
       {"step_seconds", or_null(diagnosis.step)},
       {"bottleneck", diagnosis.bottleneck.empty() ? Json(nullptr) : Json(diagnosis.bottleneck)},
       {"findings", std::move(findings)},
       {"nothing", diagnosis.nothing.empty() ? Json(nullptr) : Json(diagnosis.nothing)}});
}

}  // namespace ghostrank
