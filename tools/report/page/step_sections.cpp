// The sections about the step: how far to trust it, how long it is, where it goes, what limits it.
#include <optional>

#include "tools/diagnosis/diagnosis.h"
#include "tools/report/jobs_report.h"
#include "tools/report/page/html.h"
#include "tools/report/page/sections.h"
#include "tools/report/run_facts.h"
#include "tools/report/run_report.h"
#include "tools/text/humane.h"
#include "tools/text/statistics.h"

namespace ghostrank {
namespace {

std::vector<double> over(const Result& result, double IterationReport::*field) {
  std::vector<double> samples;
  for (const IterationReport& i : result.iterations) samples.push_back(i.*field);
  return samples;
}

double median_over(const Result& result, double IterationReport::*field) {
  return summarize(over(result, field)).median.value_or(0);
}

std::string card(const std::string& value, const std::string& what) {
  return "<div>" + element("b", value) + element("span", what) + "</div>\n";
}

std::string finding_row(const Cause& f, const Diagnosis& diagnosis) {
  const std::optional<double> of_step = share_of(f, diagnosis);
  const std::string share = of_step ? humane_percent(*of_step) : "";
  std::string html =
      "<tr>" + element("td", (f.at_most ? "≤ " : "") + humane_seconds(f.seconds), "number") +
      element("td", share, "number") + "<td>" + element("b", f.what) + html_list(f.figures);
  if (!f.remedy.empty()) html += element("p", "→ " + f.remedy);
  return html + "</td></tr>\n";
}

}  // namespace

std::string trust_line(const StoredRun& run) {
  if (!run.judged) return element("p", kUnjudged, "trust");
  const Result& result = run.result;
  const bool wrong = result.verify && result.verify->wrong_elements > 0;
  const char* kind = !result.interrupted.empty() || wrong ? "trust bad"
                     : result.fidelity.modelled           ? "trust modelled"
                     : result.fidelity.faithful           ? "trust good"
                                                          : "trust bad";
  return element("p", verdict(result), kind) + "\n";
}

std::string cards(const StoredRun& run) {
  const Result& result = run.result;
  std::string html;
  const double step = median_over(result, &IterationReport::seconds);
  if (result.jobs.empty() && !result.iterations.empty()) {
    const std::string error =
        result.fidelity.model_error > 0
            ? " ± " + humane_percent(result.fidelity.model_error) + " of the compute model"
            : "";
    html += card(humane_seconds(step), "step time (median)" + error);
    if (result.samples_per_iteration > 0 && step > 0)
      html += card(significant(result.samples_per_iteration / step) + " /s", "samples");
    if (result.flops_per_iteration > 0 && step > 0 && result.ranks > 0)
      html +=
          card(significant(result.flops_per_iteration / step / result.ranks * 1e-12) + " TFLOP/s",
               "per GPU (model FLOPs)");
    if (const auto mfu = model_flops_utilization(result, step))
      html += card(humane_percent(*mfu), "MFU");
  }
  if (result.ranks > 0) html += card(humane_count(result.ranks), "ranks");
  if (!result.iterations.empty()) {
    html += card(humane_bytes(result.wire_bytes_per_iteration), "between nodes, per step");
    html += card(humane_count(result.messages_per_iteration), "messages, per step");
  }
  return html.empty() ? "" : "<div class=\"cards\">\n" + html + "</div>\n";
}

StepBar step_bar(const StoredRun& run, const std::string& name) {
  const Result& r = run.result;
  return {name, median_over(r, &IterationReport::seconds),
          median_over(r, &IterationReport::compute_seconds),
          median_over(r, &IterationReport::exposed_comm_seconds),
          median_over(r, &IterationReport::bubble_seconds)};
}

StepDots step_dots_of(const StoredRun& run, const std::string& name) {
  const std::vector<double> seconds = over(run.result, &IterationReport::seconds);
  const Summary s = run.result.deterministic ? summarize_exact(seconds) : summarize(seconds);
  return {name, seconds, s.median.value_or(0), s.ci95};
}

std::string step_section(const StoredRun& run) {
  if (run.result.iterations.empty() || !run.result.jobs.empty()) return "";
  return section(
      "The step",
      figure("medians over iterations, means over ranks", step_bars({step_bar(run, "")})) +
          html_facts(time_facts(run.result)) + html_facts(event_facts(run.result)) +
          figure("a dot is an iteration, the bar the median, the band the 95 % interval "
                 "of the mean where there is one",
                 step_dots({step_dots_of(run, "")})));
}

std::string limits_section(const StoredRun& run) {
  if (run.result.iterations.empty()) return "";
  const Diagnosis d = diagnose(run);
  std::string html;
  if (run.result.jobs.empty() && !d.bottleneck.empty())
    html += "<p>" + element("span", "Bottleneck: ", "faint") +
            element("b", bottleneck_text(d.bottleneck)) + "</p>\n";
  if (!d.findings.empty()) {
    html += "<table class=\"findings\"><thead><tr>" + element("th", "explains", "number") +
            element("th", "of the step", "number") + element("th", "what") +
            "</tr></thead>\n<tbody>\n";
    for (const Cause& f : d.findings) html += finding_row(f, d);
    html += "</tbody></table>\n";
  }
  if (!d.nothing.empty()) html += element("p", d.nothing) + "\n";
  return section("What limits it", html);
}

std::string jobs_section(const StoredRun& run) {
  return section("Jobs on one fabric", html_table(jobs_table(run.result)));
}

std::string collectives_section(const StoredRun& run) {
  return section("Collectives", html_table(collectives_table(run.result)));
}

}  // namespace ghostrank
