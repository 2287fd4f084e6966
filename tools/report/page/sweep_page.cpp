// A sweep (schema ghostrank/sweep/1) as a page: a row for each point.
#include "tools/report/page/html.h"
#include "tools/report/page/pages.h"
#include "tools/text/humane.h"

namespace ghostrank {

std::string sweep_page(const Field& root) {
  Table table{{}, {}};
  std::vector<std::string> keys;
  for (const auto& [key, values] : root["grid"].members()) {
    keys.push_back(key);
    table.columns.push_back({key});
  }
  for (const char* name :
       {"step time", "samples/s", "compute", "exposed comm", "bytes/step", "messages/step"})
    table.columns.push_back({name, Align::right});
  table.columns.insert(table.columns.end(), {{"trust"}, {"error"}});
  std::string versions;
  std::size_t failed = 0;
  for (const Field& row : root["rows"].items()) {
    const auto cell = [&](const char* key, std::string (*text)(double)) {
      const std::optional<double> value = row[key].number();
      return value ? text(*value) : std::string("-");
    };
    std::vector<std::string> cells;
    for (const std::string& key : keys) cells.push_back(row["set"][key].text());
    const std::string faithful = row["faithful"].text(), error = row["error"].text();
    failed += error.empty() ? 0 : 1;
    cells.insert(cells.end(),
                 {cell("step_time_s", humane_seconds), cell("samples_per_s", humane_count),
                  cell("compute_s", humane_seconds), cell("exposed_s", humane_seconds),
                  cell("wire_bytes", humane_bytes), cell("messages", humane_count),
                  faithful == "true"    ? "faithful"
                  : faithful == "false" ? "NOT faithful"
                                        : faithful,
                  error});
    table.rows.push_back(std::move(cells));
    if (const std::string version = row["version"].text();
        !version.empty() && versions.find(version) == std::string::npos)
      versions += (versions.empty() ? "" : ", ") + version;
  }
  const std::string job = root["job"].text(), title = (job.empty() ? "a job" : job) + ": sweep";
  std::string html = element("h1", title) + "\n" +
                     element("p",
                             humane_count(static_cast<double>(table.rows.size()), "point") +
                                 (failed > 0 ? ", " + std::to_string(failed) + " failed" : ""),
                             failed > 0 ? "trust bad" : "trust") +
                     "\n" + section("Points", html_table(table));
  if (!versions.empty())
    html += section("Where it comes from", html_facts({{"ghostrank", versions}}));
  return html_page(title, html);
}

}  // namespace ghostrank
