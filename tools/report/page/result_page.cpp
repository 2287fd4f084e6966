#include "tools/report/page/result_page.h"

#include "tools/compare/comparison.h"
#include "tools/report/page/html.h"
#include "tools/report/page/job_words.h"
#include "tools/report/page/sections.h"
#include "tools/text/humane.h"

namespace ghostrank {
namespace {

std::string head_of(const StoredRun& run) {
  return trust_line(run) + element("p", job_sentence(run)) + "\n" + cards(run);
}

std::string sections_of(const StoredRun& run) {
  std::string html;
  for (std::string (*one)(const StoredRun&) :
       {step_section, limits_section, jobs_section, collectives_section, traffic_section,
        network_section, servers_section, trust_section, notes_section, origin_section})
    html += one(run);
  return html;
}

std::string title_of(const StoredRun& run) {
  return run.stored.job.empty() ? short_name(run.stored) : run.stored.job;
}

std::string several(const std::vector<StoredRun>& runs) {
  std::vector<StoredResult> stored;
  std::vector<StepBar> bars;
  std::vector<StepDots> dots;
  std::string html, each;
  for (const StoredRun& run : runs) {
    const std::string name = short_name(run.stored);
    stored.push_back(run.stored);
    if (run.result.jobs.empty() && !run.result.iterations.empty()) {
      bars.push_back(step_bar(run, name));
      dots.push_back(step_dots_of(run, name));
    }
    html += element("h3", name) + "\n" + trust_line(run) + element("p", job_sentence(run)) + "\n";
    each += folded(name + ": everything", head_of(run) + sections_of(run));
  }
  const std::string differences = html_table(config_differences(runs));
  return html +
         section("Side by side",
                 html_table(comparison_table(stored)) +
                     figure("where the step goes", step_bars(bars)) +
                     figure("a dot is an iteration, the bar the median, the band the 95 % interval "
                            "of the mean where there is one",
                            step_dots(dots))) +
         section("Keys of the jobs that differ",
                 differences.empty() ? element("p", "none") + "\n" : differences) +
         section("Each result", each);
}

}  // namespace

std::string result_page(const std::vector<StoredRun>& runs) {
  if (runs.size() == 1) {
    const std::string title = title_of(runs.front());
    return html_page(
        title, element("h1", title) + "\n" + head_of(runs.front()) + sections_of(runs.front()));
  }
  const std::string title =
      humane_count(static_cast<double>(runs.size()), "result") + " side by side";
  return html_page(title, element("h1", title) + "\n" + several(runs));
}

}  // namespace ghostrank
