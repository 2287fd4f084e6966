// ghostrank topology show: the switches and cables of a job's fabric, or of a file of links.
#include "profiles/load/files/topology.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <numbers>
#include <utility>

#include <CLI/CLI.hpp>

#include "emulator/network/fabric_facts.h"
#include "profiles/error.h"
#include "profiles/input/input_file.h"
#include "profiles/input/yaml.h"
#include "tools/report/files/output_files.h"
#include "tools/report/json/json.h"
#include "tools/text/humane.h"
#include "tools/text/svg.h"
#include "tools/text/table.h"
#include "tools/verbs.h"

namespace ghostrank {
namespace {

constexpr std::size_t kMostDrawn = 150;  // switches; larger fabrics are drawn pod by pod

// A file of links needs no job; the nodes are those that it names.
ClusterSpec cluster_of(const JobFlags& flags) {
  ClusterSpec cluster;
  if (flags.path.ends_with(".csv")) {
    if (!flags.overrides.empty() || flags.seed)
      throw Error(flags.path +
                  " is a file of links, which has no job for -s and --seed to change; name a job, "
                  "as in  topology show JOB.yaml -s cluster.topology.kind=" +
                  flags.path);
    const std::string text = read_input(flags.path);
    cluster = cluster_named_in(text, flags.path);
    cluster.topology.file =
        std::make_shared<const SwitchGraph>(parse_topology(text, flags.path, cluster));
    return cluster;
  }
  cluster = load(flags).spec.cluster;
  if (cluster.topology.kind == TopologySpec::Kind::nonblocking)
    throw Error(flags.path +
                ": cluster.topology.kind is nonblocking: one ideal switch, which there is nothing "
                "to show of; set it, as in  -s cluster.topology.kind=leaf_spine");
  return cluster;
}

std::string rate(double bps) { return bps > 0 ? humane_bits(bps) : "unlimited"; }

std::vector<Fact> text_of(const SwitchGraph& graph, const FabricFacts& facts,
                          const ClusterSpec& cluster) {
  std::vector<Fact> rows{{"topology", graph.summary},
                         {"NICs", humane_count(facts.nics, "NIC") + " of the job on " +
                                      humane_count(graph.places, "place") + " for nodes"}};
  for (const FabricFacts::Layer& layer : facts.layers)
    rows.push_back({layer.name, humane_count(layer.switches, "switch", "switches") + ", at most " +
                                    humane_count(layer.ports, "port") + " in use"});
  for (const FabricFacts::Cables& c : facts.cables)
    rows.push_back({c.tier, humane_count(c.count, "cable") + " of " + rate(c.bps) +
                                (c.failed > 0 ? ", " + std::to_string(c.failed) + " failed" : "")});
  rows.push_back({"ports", std::to_string(facts.ports) + " in use at switches"});
  rows.push_back({"diameter", humane_count(facts.diameter, "link") + " between switches"});
  if (cluster.nic.rate_bps > 0 && facts.nics > 1) {
    const bool alike =
        cluster.server_nodes() == 0 || cluster.servers.nic.rate_bps == cluster.nic.rate_bps;
    rows.push_back(
        {"bisection", humane_bits(facts.bisection_bps) +
                          " from the first half of the NICs to the second, " +
                          humane_percent(facts.bisection_share) + " of what they can send" +
                          (alike ? " at " + rate(cluster.nic.rate_bps) + " each" : std::string())});
  }
  return rows;
}

Json json_of(const SwitchGraph& graph, const FabricFacts& facts, double nic_bps) {
  Json layers = Json::array(), cables = Json::array();
  for (const FabricFacts::Layer& l : facts.layers)
    layers.push_back({{"name", l.name}, {"switches", l.switches}, {"ports", l.ports}});
  for (const FabricFacts::Cables& c : facts.cables)
    cables.push_back(
        {{"tier", c.tier}, {"rate_bps", c.bps}, {"count", c.count}, {"failed", c.failed}});
  return {{"schema", "ghostrank/topology/1"},
          {"topology", graph.summary},
          {"nics", facts.nics},
          {"places", graph.places},
          {"switches", graph.switches.size()},
          {"ports", facts.ports},
          {"layers", std::move(layers)},
          {"cables", std::move(cables)},
          {"diameter", facts.diameter},
          {"nic_rate_bps", nic_bps},
          {"bisection_bps", facts.bisection_bps},
          {"bisection_share", facts.bisection_share}};
}

// Draws layers from the bottom up; a single one as a circle. In large fabrics a node stands for all
// switches of a layer in a pod, and an arrow for all cables between two such.
std::string picture_of(const SwitchGraph& graph) {
  const std::vector<int> layer = layers_of(graph);
  const bool whole = graph.switches.size() <= kMostDrawn;
  std::map<std::pair<int, std::size_t>, int> number;  // layer, pod or switch -> node
  std::vector<int> node_of(graph.switches.size()), stands_for;
  SvgGraph picture{graph.summary, {}, {}};
  for (std::size_t s = 0; s < layer.size(); ++s) {
    const auto [at, fresh] = number.try_emplace({layer[s], whole ? s : graph.switches[s].pod},
                                                static_cast<int>(picture.nodes.size()));
    if (fresh) {
      picture.nodes.push_back({{}, graph.switches[s].name, layer[s]});
      stands_for.push_back(0);
    }
    node_of[s] = at->second;
    if (++stands_for[at->second] > 1)
      picture.nodes[at->second].name =
          graph.switches[s].name.substr(0, graph.switches[s].name.find_first_of("0123456789")) +
          " x " + std::to_string(stands_for[at->second]);
  }
  const int layers = 1 + *std::max_element(layer.begin(), layer.end());
  std::vector<int> in_layer(layers), placed(in_layer.size());
  for (const SvgNode& node : picture.nodes) ++in_layer[node.kind];
  for (SvgNode& node : picture.nodes) {
    const std::size_t l = node.kind;
    const double along = (placed[l]++ + 0.5) / in_layer[l];
    if (layers > 1 || graph.cables.empty()) {
      node.at = {along, layers == 1 ? 0.5 : 0.95 - 0.9 * node.kind / (layers - 1)};
    } else {
      const double angle = 2 * std::numbers::pi * along;
      node.at = {0.5 + 0.45 * std::sin(angle), 0.5 - 0.45 * std::cos(angle)};
    }
  }
  std::map<std::pair<int, int>, std::pair<int, double>> cables;  // count, rate
  double widest = 0;
  for (const SwitchGraph::Cable& cable : graph.cables) {
    if (cable.failed || node_of[cable.a] == node_of[cable.b]) continue;
    auto& [count, bps] = cables[{node_of[cable.a], node_of[cable.b]}];
    ++count;
    bps += cable.bps;
    widest = std::max(widest, bps);
  }
  for (const auto& [ends, sum] : cables)
    picture.edges.push_back({ends.first, ends.second, widest > 0 ? sum.second / widest : 1,
                             humane_count(sum.first, "cable") + ", " + rate(sum.second)});
  return svg_graphs("", {picture});
}

int verb_show(const Argv& argv) {
  JobFlags flags;
  std::string svg, json;
  CLI::App app(
      "Show the switches and cables of a job's modelled network, or of a file of links (.csv).",
      "ghostrank topology show");
  add_job_flags(app, flags);
  app.add_option("--svg", svg, "a picture")->type_name("FILE")->group("Output");
  app.add_option("--json", json, "the same facts as JSON; - is stdout")
      ->type_name("FILE|-")
      ->group("Output");
  app.footer(
      "Examples:\n"
      "  ghostrank topology show job.yaml\n"
      "  ghostrank topology show job.yaml -s cluster.topology.kind=fat_tree --svg fabric.svg\n"
      "  ghostrank topology show links.csv");
  if (!parse(app, argv)) return 0;
  const ClusterSpec cluster = cluster_of(flags);
  check_outputs({{"--svg", svg}, {"--json", json}});
  SwitchGraph graph;
  FabricFacts facts;
  try {
    graph = switches_of(cluster);
    facts = fabric_facts(graph, cluster);
  } catch (const Error& error) {
    throw Error(flags.path + ": " + error.what());
  }
  const int unwritten = write_each(std::vector<TextFile>{
      {svg, [&] { return picture_of(graph); }},
      {json, [&] { return dump(json_of(graph, facts, cluster.nic.rate_bps)); }}});
  if (json != "-") std::printf("%s", render(text_of(graph, facts, cluster)).c_str());
  return unwritten;
}

}  // namespace

std::span<const Verb> topology_verbs() {
  static const std::array verbs{
      Verb{"show", "show a fabric's switches, cables, diameter and bisection", verb_show}};
  return verbs;
}

int verb_topology(const Argv& argv) {
  return play_verb_of(topology_verbs(), argv, "The modelled network between the nodes of a job.");
}

}  // namespace ghostrank
