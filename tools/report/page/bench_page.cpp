// What `bench COLLECTIVE --json` wrote (nccl-tests' form) as a page: a row for each size.
#include <algorithm>

#include "tools/report/page/html.h"
#include "tools/report/page/job_words.h"
#include "tools/report/page/pages.h"
#include "tools/text/humane.h"
#include "tools/text/svg.h"

namespace ghostrank {
namespace {

// How far to trust the rows: the first trouble, or what all of them are.
std::string bench_trust(const Field& root) {
  for (const std::string& error : root["errors"].texts()) return element("p", error, "trust bad");
  bool modelled = false, faithful = true;
  for (const Field& row : root["results"].items()) {
    modelled = modelled || row["ghostrank"]["modelled"].truth();
    faithful = faithful && row["ghostrank"]["faithful"].truth();
  }
  if (modelled) return element("p", "modelled: virtual time", "trust modelled");
  if (faithful) return element("p", "faithful: this machine kept up", "trust good");
  return element("p", "NOT faithful", "trust bad");
}

Table rows_of(const Field& root) {
  Table table{{{"size", Align::right},
               {"elements", Align::right},
               {"type"},
               {"reduction"},
               {"time", Align::right},
               {"algbw", Align::right},
               {"busbw", Align::right},
               {"wrong", Align::right},
               {"messages", Align::right}},
              {}};
  for (const Field& row : root["results"].items()) {
    const Field figures = row["out_of_place"];
    const auto cell = [](const Field& field, std::string (*text)(double)) {
      const std::optional<double> value = field.number();
      return value ? text(*value) : std::string("-");
    };
    const auto rate = [](double GBps) { return significant(GBps, 3) + " GB/s"; };
    table.rows.push_back(
        {cell(row["size"], humane_bytes), cell(row["count"], humane_count), row["type"].text(),
         row["redop"].text(),
         cell(figures["time"], [](double us) { return humane_seconds(us * 1e-6); }),
         cell(figures["alg_bw"], rate), cell(figures["bus_bw"], rate),
         cell(figures["nwrong"], humane_count), cell(row["ghostrank"]["messages"], humane_count)});
  }
  return table;
}

// A picture that stands alone elsewhere, without its XML declaration; the page's style sheet gives
// it the page's colours.
std::string drawn(const std::string& svg) {
  const std::size_t begin = std::min(svg.find("<svg"), svg.size());
  return "<div class=\"drawn\">" + svg.substr(begin) + "</div>\n";
}

std::string curve_of(const Field& root) {
  SvgCurves curves{"bandwidth over size", "bytes", "GB/s", {{"busbw", {}}, {"algbw", {}}}};
  curves.scale = SvgScale::by_tens;
  for (const Field& row : root["results"].items()) {
    const double size = row["size"].number_or(0);
    const auto add = [&](std::size_t line, double GBps) {
      if (size > 0 && GBps > 0) curves.lines[line].points.push_back({size, GBps});
    };
    add(0, row["out_of_place"]["bus_bw"].number_or(0));
    add(1, row["out_of_place"]["alg_bw"].number_or(0));
  }
  return curves.lines.front().points.size() < 2 ? "" : drawn(svg_curves(curves));
}

}  // namespace

std::string bench_page(const Field& root) {
  const std::vector<Field> results = root["results"].items();
  const std::string name = results.empty() ? "" : results.front()["experiment_name"].text();
  const std::string title = name.empty() ? "bench" : name;
  std::vector<Fact> facts;
  const auto add = [&](const char* fact, const std::string& value) {
    if (!value.empty()) facts.push_back({fact, value});
  };
  const Field own = root["ghostrank"], config = own["config"];
  add("started", root["start_time"].text());
  add("ghostrank", own["version"].text());
  add("commit", own["build"]["commit"].text());
  (void)config.members();  // an object, or nothing
  std::string command;
  for (const std::string& word : root["args"].texts())
    command += (command.empty() ? "" : " ") + word;
  return html_page(
      title,
      element("h1", title) + "\n" + bench_trust(root) + "\n" +
          section("Sizes", html_table(rows_of(root)) + curve_of(root)) +
          section("Where it comes from",
                  html_facts(facts) + (command.empty() ? "" : element("pre", command) + "\n") +
                      (config.missing() ? ""
                                        : folded("Configuration: every key of the job",
                                                 html_facts(config_facts(config.json()))))));
}

}  // namespace ghostrank
