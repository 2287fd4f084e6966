// A comparison of variants of a job (schema ghostrank/compare/1) as a page.
#include "profiles/input/keys.h"
#include "tools/compare/ab/comparison.h"
#include "tools/report/page/html.h"
#include "tools/report/page/pages.h"
#include "tools/report/page/pictures.h"

namespace ghostrank {
namespace {

std::vector<StepDots> dots_of(const AbComparison& c, const AbSummary& s) {
  std::vector<StepDots> columns;
  for (std::size_t i = 0; i < c.variants.size(); ++i) {
    const VariantSummary& v = s.variants[i];
    columns.push_back({c.variants[i].name, v.samples, v.median, {}});
    if (v.ci95) columns.back().interval = {v.ci95->low, v.ci95->high};
  }
  return columns;
}

}  // namespace

std::string comparison_page(const std::string& file) {
  const AbComparison c = read_ab_comparison(file);
  const AbSummary s = summarize(c);
  const bool good = c.interrupted.empty() && s.blocks > 0 && s.faithful;
  const std::string title = c.job.empty() ? "variants of a job" : c.job + ": variants";
  std::string html = element("h1", title) + "\n";
  if (!c.interrupted.empty())
    html += element("p", "INCOMPLETE: " + c.interrupted, "trust bad") + "\n";
  html += element("p", ab_head(c, s), good ? "trust good" : "trust bad") + "\n";
  if (s.blocks > 0)
    html += section("Ratios", html_facts(ab_facts(c, s))) +
            section("Variants", html_table(ab_table(c, s))) +
            figure("a dot is a run, the bar the median, the band its 95 % interval",
                   step_dots(dots_of(c, s)));
  html += section("Notes", html_list(c.notes));
  std::vector<Fact> facts{{"file", file},
                          {"job", c.job},
                          {"started", c.started_utc},
                          {"ghostrank", c.version},
                          {"seed", std::to_string(c.seed)}};
  if (!c.common.empty()) facts.push_back({"settings of all", join(c.common, " ")});
  return html_page(title,
                   html + section("Where it comes from",
                                  html_facts(facts) + element("pre", join(c.argv, " ")) + "\n"));
}

}  // namespace ghostrank
