#include "profiles/load/sections/slice.h"

#include <string>

#include "profiles/input/quantity.h"

namespace ghostrank {
namespace {

constexpr int kMostNode = 1'000'000;

}  // namespace

std::vector<Node> read_slice(const Settings& in, int nodes) {
  if (in.text("scale.mode") != "slice") return {};
  const Setting& named = in.at("scale.nodes");
  if (named.text.empty())
    fail(in.at("scale.mode").mark,
         "scale.mode: slice plays the nodes of scale.nodes, which is not given; name them, as in "
         "scale: {mode: slice, nodes: 0-7}");
  const auto list = parse_number_list(named.text, kMostNode);
  if (!list)
    fail(named.mark, "scale.nodes is " + quote(named.text) +
                         "; write numbers of nodes, each once, as in 0-7 or '0-3,8'");
  if (list->back() >= nodes)
    fail(named.mark, "scale.nodes: there is no node " + std::to_string(list->back()) +
                         ": cluster.nodes is " + std::to_string(nodes) +
                         ", and numbers begin at 0");
  if (std::ssize(*list) == nodes)
    fail(named.mark,
         "scale.nodes names every node of GPUs, so none is left to model; name fewer, or use "
         "scale.mode: dilate");
  std::vector<Node> slice;
  for (const int node : *list) slice.emplace_back(node);
  return slice;
}

void check_slice(const Settings& in, const JobSpec& spec, bool several) {
  if (spec.slice.empty()) return;
  const auto refuse = [&](bool bad, const char* key, const std::string& why) {
    if (bad) fail(in.at(key).mark, std::string(key) + ": " + why);
  };
  refuse(several, "scale.mode", "slice is of one job; leave out jobs, or use dilate");
  refuse(spec.parallel.tune, "parallel.tune",
         "a slice does not search for settings; search with scale.mode: dilate, and give what it "
         "finds");
  refuse(spec.fabric.kind == FabricKind::packets, "fabric.kind",
         "packets plays all nodes, not a slice; use ofi, memory or virtual, or scale.mode: dilate");
  refuse(spec.fabric.network != NetworkModel::loggp, "fabric.network",
         in.text("fabric.network") +
             " shares the network among all nodes, of which a slice plays "
             "some; use loggp, or scale.mode: dilate");
  refuse(spec.cluster.topology.kind != TopologySpec::Kind::nonblocking, "cluster.topology.kind",
         "a slice has no links that other nodes use, too; use nonblocking, or scale.mode: dilate");
  refuse(spec.cluster.nic.latency == 0, "cluster.nic.latency_us",
         "with 0 what leaves a slice could come back at once; give NICs a latency, or use "
         "scale.mode: dilate");
  refuse(spec.run.verify, "run.verify",
         "sums need the data of ranks that a slice does not play; use scale.mode: dilate");
  refuse(spec.run.min_seconds > 0, "run.min_seconds",
         "what comes to a slice is known before it begins, so the number of its iterations must "
         "be; use run.iterations");
  refuse(spec.run.end.is_open(),
         spec.run.end.duration > 0 ? "run.duration" : "run.until.ci95_percent",
         "what comes to a slice is known before it begins, so the number of its iterations must "
         "be; use run.iterations");
}

}  // namespace ghostrank
