#include "tools/report/pictures/heat_map.h"

#include "profiles/error.h"
#include "tools/text/humane.h"
#include "tools/text/svg.h"

namespace ghostrank {

void check_heat_map(const JobSpec& spec, int processes) {
  if (spec.cluster.topology.kind == TopologySpec::Kind::nonblocking)
    throw Error(
        "--heatmap: the fabric is one ideal switch without links; describe them, as in "
        "-s 'cluster.topology={kind: leaf_spine, leaves: 2}'");
  if (is_network(spec.fabric.kind) || processes > 1)
    throw Error("--heatmap: the links of a real network are not seen; use fabric.kind=virtual");
}

std::string link_heat_map(const Result& result) {
  SvgTimeMap map;
  if (!result.link_history) return svg_time_map({"no link was watched", {}, 1, {}});
  const LinkHistory& history = *result.link_history;
  map.title = history.links.size() == history.used
                  ? "Links that carried anything: share of time that they were busy"
                  : "The busiest " + std::to_string(history.links.size()) + " of " +
                        humane_count(history.used, "link") +
                        " that carried anything: share of time that they were busy";
  map.rows = history.links;
  map.cell_seconds = history.bin_seconds;
  map.shares = history.busy;
  return svg_time_map(map);
}

}  // namespace ghostrank
