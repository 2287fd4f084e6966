// ghostrank place: where a job's emulated nodes should lie so that few bytes go far: on the real
// hosts, or on the places of a modelled fabric.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>

#include <CLI/CLI.hpp>

#include "emulator/network/topology.h"
#include "emulator/placement/on_fabric.h"
#include "emulator/placement/partition.h"
#include "emulator/traffic/traffic.h"
#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "profiles/planners/plan.h"
#include "tools/report/files/output_files.h"
#include "tools/report/json/json.h"
#include "tools/text/humane.h"
#include "tools/text/table.h"
#include "tools/verbs.h"
#include "tools/watch/patience.h"

namespace ghostrank {
namespace {

struct PlaceFlags {
  JobFlags job;
  std::string output, json, on = "auto", capacity = "nodes";
  int hosts = 0;
};

// One way to place the nodes, and what it costs: bytes between hosts, or bytes times links.
struct Way {
  std::string name;
  std::vector<int> of_node;  // host or place
  double cost = 0;
};

// What was compared, by name; the last is what was found.
struct Choice {
  std::vector<Way> ways;
  const Way& found() const { return ways.back(); }
  // The best of the others.
  const Way& known() const {
    return *std::min_element(ways.begin(), ways.end() - 1,
                             [](const Way& a, const Way& b) { return a.cost < b.cost; });
  }
  bool gains() const { return found().cost < known().cost * (1 - 1e-9); }
};

std::size_t at(int i) { return static_cast<std::size_t>(i); }

std::string share(double part, double all) { return all > 0 ? humane_percent(part / all) : "-"; }

// ---- On real hosts

// "s1", or its number where hosts has no such name or several.
std::string name_of_host(const JobSpec& spec, int host) {
  if (spec.hosts.empty()) return std::to_string(host);
  const auto with = [&](const HostEntry& one) { return one.name == spec.hosts[at(host)].name; };
  const bool unique = std::count_if(spec.hosts.begin(), spec.hosts.end(), with) == 1;
  return unique ? spec.hosts[at(host)].name : std::to_string(host);
}

// The numbers of nodes that hosts play in proportion to their cores; at least one.
std::vector<int> sizes_by_cores(const JobSpec& spec, int hosts) {
  const int nodes = spec.cluster.all_nodes();
  std::vector<double> weight;
  for (std::size_t h = 0; h < at(hosts); ++h) {
    const auto cores =
        h < spec.hosts.size() ? parse_number_list(spec.hosts[h].cores, 1 << 20) : std::nullopt;
    if (!cores || cores->empty())
      throw Error(spec.source_of("hosts") + ": --capacity cores: host " +
                  (h < spec.hosts.size() ? spec.hosts[h].name : std::to_string(h)) +
                  " has no cores; give every host of hosts its cores, as in cores: 0-15");
    weight.push_back(static_cast<double>(cores->size()));
  }
  const double all = std::accumulate(weight.begin(), weight.end(), 0.0);
  std::vector<int> sizes;
  double before = 0;  // shares of the hosts so far; rounded so that they add up to the nodes
  for (const double w : weight) {
    const auto until = [&](double sum) { return static_cast<int>(nodes * sum / all + 1e-9); };
    sizes.push_back(until(before + w) - until(before));
    before += w;
  }
  for (int& size : sizes)
    if (size == 0) ++size, --*std::max_element(sizes.begin(), sizes.end());
  return sizes;
}

std::vector<int> in_blocks(const std::vector<int>& sizes) {
  std::vector<int> of_node;
  for (std::size_t h = 0; h < sizes.size(); ++h)
    of_node.insert(of_node.end(), at(sizes[h]), static_cast<int>(h));
  return of_node;
}

// One node to each host in turn, as long as it has room.
std::vector<int> in_turn(std::vector<int> left, int nodes) {
  std::vector<int> of_node;
  for (std::size_t h = 0; of_node.size() < at(nodes); h = (h + 1) % left.size())
    if (left[h] > 0) of_node.push_back(static_cast<int>(h)), --left[h];
  return of_node;
}

struct NodeTraffic {
  std::map<std::pair<int, int>, double> bytes;  // from node to node
  std::vector<NicStream> streams;
  double all = 0;         // between nodes
  bool switches = false;  // something goes to a switch, or comes from one
};

NodeTraffic traffic_of(const JobSpec& spec, const TrafficPlan& plan) {
  NodeTraffic traffic;
  const int nics = spec.cluster.nics_per_node, nodes = spec.cluster.all_nodes();
  for (const PairTraffic& pair : plan.pairs) {
    const int from = pair.source_nic.value() / nics, to = pair.target_nic.value() / nics;
    if (from >= nodes || to >= nodes) traffic.switches = true;  // which is on no node
    if (from >= nodes || to >= nodes || from == to) continue;
    traffic.bytes[{from, to}] += pair.bytes;
    traffic.streams.push_back(
        {from, to, pair.source_nic.value() % nics, pair.target_nic.value() % nics, pair.bytes});
    traffic.all += pair.bytes;
  }
  return traffic;
}

struct HostLoad {
  std::vector<int> nodes;
  double sends = 0, gets = 0;  // from and to other hosts
};

std::vector<HostLoad> loads_of(const NodeTraffic& traffic, const std::vector<int>& of_node,
                               int hosts) {
  std::vector<HostLoad> loads(at(hosts));
  for (std::size_t n = 0; n < of_node.size(); ++n)
    loads[at(of_node[n])].nodes.push_back(static_cast<int>(n));
  for (const auto& [pair, bytes] : traffic.bytes) {
    const int from = of_node[at(pair.first)], to = of_node[at(pair.second)];
    if (from == to) continue;
    loads[at(from)].sends += bytes;
    loads[at(to)].gets += bytes;
  }
  return loads;
}

// What a run does without a file.
std::vector<int> as_run(JobSpec spec, bool cyclic, int hosts) {
  spec.placement = {cyclic, {}};
  std::vector<int> of_node;
  for (const Host host : host_of_nodes(spec, hosts)) of_node.push_back(host.value());
  return of_node;
}

std::vector<int> sizes_in(const std::vector<int>& of_node, int hosts) {
  std::vector<int> sizes(at(hosts));
  for (const int host : of_node) ++sizes[at(host)];
  return sizes;
}

Choice choose_hosts(const JobSpec& spec, const NodeTraffic& traffic,
                    const std::vector<int>& sizes) {
  const int nodes = spec.cluster.all_nodes(), hosts = static_cast<int>(sizes.size());
  std::vector<NodeEdge> edges;
  for (const auto& [pair, bytes] : traffic.bytes) edges.push_back({pair.first, pair.second, bytes});
  const NodeGraph graph(nodes, edges);
  Choice choice;
  std::vector<Parts> starts{in_blocks(sizes), in_turn(sizes, nodes)};
  const auto add = [&](const std::string& name, std::vector<int> of_node) {
    if (sizes_in(of_node, hosts) == sizes) starts.push_back(of_node);
    const double cost = weight_between(graph, of_node);
    choice.ways.push_back({name, std::move(of_node), cost});
  };
  add("blocked", as_run(spec, false, hosts));
  add("cyclic", as_run(spec, true, hosts));
  if (!spec.placement.host_of_node.empty()) {
    std::vector<int> given;
    for (const Host host : spec.placement.host_of_node) given.push_back(host.value());
    add("as given", std::move(given));
  }
  std::vector<int> found = least_between(graph, sizes, std::move(starts));
  const double cost = weight_between(graph, found);
  choice.ways.push_back({"found", std::move(found), cost});
  return choice;
}

std::string placement_text(const JobSpec& spec, const std::vector<HostLoad>& loads) {
  std::string text = "# emulated nodes, and the host that plays them\n";
  for (std::size_t h = 0; h < loads.size(); ++h)
    text += number_list_text(loads[h].nodes) + " " + name_of_host(spec, static_cast<int>(h)) + "\n";
  return text;
}

double busiest(const std::vector<HostLoad>& loads) {
  double most = 0;
  for (const HostLoad& load : loads) most = std::max({most, load.sends, load.gets});
  return most;
}

std::string hosts_text(const JobSpec& spec, const NodeTraffic& traffic, const Choice& choice,
                       int hosts) {
  Table ways{{{"placement"},
              {"between hosts", Align::right},
              {"of all between nodes", Align::right},
              {"busiest host", Align::right}},
             {}};
  for (const Way& way : choice.ways)
    ways.rows.push_back({way.name, humane_bytes(way.cost), share(way.cost, traffic.all),
                         humane_bytes(busiest(loads_of(traffic, way.of_node, hosts)))});
  Table table{{{"host"},
               {"nodes"},
               {"ranks", Align::right},
               {"sends to others", Align::right},
               {"gets from others", Align::right}},
              {}};
  const std::vector<HostLoad> loads = loads_of(traffic, choice.found().of_node, hosts);
  for (std::size_t h = 0; h < loads.size(); ++h) {
    int ranks = 0;
    for (const int node : loads[h].nodes)
      if (node < spec.cluster.rank_nodes()) ranks += spec.cluster.gpus_per_node;
    table.rows.push_back({name_of_host(spec, static_cast<int>(h)), number_list_text(loads[h].nodes),
                          std::to_string(ranks), humane_bytes(loads[h].sends),
                          humane_bytes(loads[h].gets)});
  }
  return render(ways) + "\n" + render(table) + "\n";
}

Json ways_json(const Choice& choice, const char* cost) {
  Json list = Json::array();
  for (const Way& way : choice.ways)
    list.push_back({{"name", way.name}, {cost, std::llround(way.cost)}, {"of_node", way.of_node}});
  return list;
}

Json hosts_json(const JobSpec& spec, const NodeTraffic& traffic, const Choice& choice, int hosts) {
  Json list = Json::array();
  const std::vector<HostLoad> loads = loads_of(traffic, choice.found().of_node, hosts);
  for (std::size_t h = 0; h < loads.size(); ++h)
    list.push_back({{"host", name_of_host(spec, static_cast<int>(h))},
                    {"nodes", loads[h].nodes},
                    {"sends_bytes", std::llround(loads[h].sends)},
                    {"gets_bytes", std::llround(loads[h].gets)}});
  return {{"schema", "ghostrank/place/1"},
          {"on", "hosts"},
          {"bytes_between_nodes", traffic.all},
          {"placements", ways_json(choice, "bytes_between_hosts")},
          {"hosts", std::move(list)}};
}

// ---- On a modelled fabric

double crossed_as(JobSpec spec, TopologySpec::Placement placement, const NodeTraffic& traffic) {
  spec.cluster.topology.placement = placement;
  const Topology topology(spec);
  const int nics = spec.cluster.nics_per_node;
  double sum = 0;
  for (const NicStream& s : traffic.streams)
    sum += s.bytes * topology.hops(Nic(s.from * nics + s.from_nic), Nic(s.to * nics + s.to_nic));
  return sum;
}

Choice choose_places(const JobSpec& spec, const NodeTraffic& traffic,
                     const PlaceDistances& distances) {
  using Placement = TopologySpec::Placement;
  const TopologySpec& topology = spec.cluster.topology;
  Places packed(at(spec.cluster.all_nodes()));
  std::iota(packed.begin(), packed.end(), 0);
  Choice choice;
  choice.ways.push_back({"packed", packed, crossed(traffic.streams, distances, packed)});
  choice.ways.push_back({"spread", {}, crossed_as(spec, Placement::spread, traffic)});
  std::vector<Places> starts{std::move(packed)};
  if (topology.placement == Placement::random)
    choice.ways.push_back({"random", {}, crossed_as(spec, Placement::random, traffic)});
  if (topology.placement == Placement::file) {
    const Places& own = topology.place_of_node;
    choice.ways.push_back({"as given", own, crossed(traffic.streams, distances, own)});
    starts.push_back(own);
  }
  Places found = least_crossed(traffic.streams, distances, std::move(starts));
  const double cost = crossed(traffic.streams, distances, found);
  choice.ways.push_back({"found", std::move(found), cost});
  return choice;
}

std::string places_text(const Places& places) {
  std::string text = "# nodes of the job, and their places on the fabric\n";
  const int nodes = static_cast<int>(places.size());
  const auto range = [](int first, int last) {
    return std::to_string(first) + (last > first ? "-" + std::to_string(last) : "");
  };
  for (int first = 0, last = 0; first < nodes; first = last + 1) {
    for (last = first; last + 1 < nodes && places[at(last + 1)] == places[at(last)] + 1;) ++last;
    text += range(first, last) + " " + range(places[at(first)], places[at(last)]) + "\n";
  }
  return text;
}

std::string fabric_text(const NodeTraffic& traffic, const Choice& choice,
                        const std::string& summary) {
  Table ways{
      {{"placement"}, {"bytes x links", Align::right}, {"links a byte crosses", Align::right}}, {}};
  for (const Way& way : choice.ways)
    ways.rows.push_back({way.name, humane_bytes(way.cost),
                         traffic.all > 0 ? significant(way.cost / traffic.all, 3) : "-"});
  return summary + "\n\n" + render(ways) + "\n";
}

Json fabric_json(const NodeTraffic& traffic, const Choice& choice) {
  return {{"schema", "ghostrank/place/1"},
          {"on", "fabric"},
          {"bytes_between_nodes", traffic.all},
          {"placements", ways_json(choice, "bytes_times_links")}};
}

// ---- The verb

bool read_flags(const Argv& argv, PlaceFlags& flags) {
  CLI::App app(
      "Find where a job's emulated nodes should lie so that few bytes go far: on its real hosts, "
      "or on the places of its modelled fabric.",
      "ghostrank place");
  add_job_flags(app, flags.job);
  app.add_option("--on", flags.on,
                 "hosts: real machines, for the job's key placement; fabric: places, for "
                 "cluster.topology.placement; auto: hosts where the job or --hosts has several, "
                 "else the fabric")
      ->check(one_of({"auto", "hosts", "fabric"}))
      ->capture_default_str()
      ->type_name("WHERE")
      ->group("Placement");
  app.add_option("--hosts", flags.hosts,
                 "number of hosts, one process each; default: as hosts says")
      ->check(between(2, 65536))
      ->type_name("N")
      ->group("Placement");
  app.add_option("--capacity", flags.capacity,
                 "nodes: every host plays as many; cores: in proportion to the cores of hosts")
      ->check(one_of({"nodes", "cores"}))
      ->capture_default_str()
      ->type_name("WHAT")
      ->group("Placement");
  app.add_option("-o,--output", flags.output, "writes the placement that was found; - is stdout")
      ->type_name("FILE|-")
      ->group("Output");
  app.add_option("--json", flags.json, "the same facts as JSON; - is stdout")
      ->type_name("FILE|-")
      ->group("Output");
  app.footer(
      "Examples:\n"
      "  ghostrank place job.yaml --hosts 4 -o hosts.txt && ghostrank run job.yaml -s "
      "placement=hosts.txt\n"
      "  ghostrank place job.yaml -s cluster.topology.kind=leaf_spine --on fabric -o places.txt");
  return parse(app, argv);
}

// Several hosts, or a fabric.
bool is_on_hosts(const PlaceFlags& flags, const JobSpec& spec) {
  const bool several = flags.hosts > 1 || spec.hosts.size() > 1;
  const TopologySpec::Kind kind = spec.cluster.topology.kind;
  if (flags.on == "hosts" && !several)
    throw Error(spec.source_of("hosts") +
                ": --on hosts: the job names no hosts; say how many, as in --hosts 4");
  if (flags.on == "hosts" || (flags.on == "auto" && several)) return true;
  if (flags.hosts > 0)
    throw Error("--hosts is the number of real hosts; leave it out of --on fabric");
  if (flags.capacity != "nodes")
    throw Error("--capacity is of real hosts; leave it out where nodes are placed on a fabric");
  if (kind == TopologySpec::Kind::nonblocking)
    throw Error(spec.source_of("cluster.topology.kind") +
                ": every order of nodes is alike on one process and one ideal switch; say how "
                "many hosts there are, as in --hosts 4, or give the job a cluster.topology.kind");
  if (kind == TopologySpec::Kind::file)
    throw Error(spec.source_of("cluster.topology.kind") +
                ": cluster.topology.kind: a file says itself where every node is; change it there");
  if (kind == TopologySpec::Kind::rail_only)
    throw Error(spec.source_of("cluster.topology.kind") +
                ": cluster.topology.kind: rail_only has one switch a rail, on which every order of "
                "nodes is alike; place them on hosts (--hosts 4)");
  return false;
}

// Says whether the placement that was found is worth its file.
std::string verdict_on(const Choice& choice, const std::string& key, const PlaceFlags& flags) {
  const Way& known = choice.known();
  if (!choice.gains() && flags.capacity == "cores")
    return known.name + " sends no more, but does not heed the cores of hosts\n";
  if (!choice.gains())
    return known.name + " is as good as any placement that was found" +
           (known.name == "as given" ? "\n" : ": " + key + "=" + known.name + " needs no file\n");
  std::string text =
      "found saves " + share(known.cost - choice.found().cost, known.cost) + " of " + known.name;
  const bool written = !flags.output.empty() && flags.output != "-";
  text += written ? "; play it with -s " + key + "=" + flags.output + "\n"
                  : "; -o FILE writes it, for -s " + key + "=FILE\n";
  return text;
}

int finish(const PlaceFlags& flags, const std::string& text, const std::string& placement,
           const Json& json) {
  const int unwritten = write_each(std::vector<TextFile>{{flags.output, [&] { return placement; }},
                                                         {flags.json, [&] { return dump(json); }}});
  if (flags.json != "-" && flags.output != "-") std::fputs(text.c_str(), stdout);
  return unwritten;
}

int place_on_hosts(const PlaceFlags& flags, const JobSpec& spec, const NodeTraffic& traffic) {
  const int hosts = flags.hosts > 0 ? flags.hosts : static_cast<int>(spec.hosts.size());
  const std::vector<int> sizes = flags.capacity == "cores"
                                     ? sizes_by_cores(spec, hosts)
                                     : sizes_in(as_run(spec, false, hosts), hosts);
  const Choice choice = choose_hosts(spec, traffic, sizes);
  return finish(flags,
                hosts_text(spec, traffic, choice, hosts) + verdict_on(choice, "placement", flags),
                placement_text(spec, loads_of(traffic, choice.found().of_node, hosts)),
                hosts_json(spec, traffic, choice, hosts));
}

int place_on_fabric(const PlaceFlags& flags, const JobSpec& spec, const NodeTraffic& traffic) {
  const PlaceDistances distances(spec);
  const Choice choice = choose_places(spec, traffic, distances);
  return finish(flags,
                fabric_text(traffic, choice, Topology(spec).description()) +
                    verdict_on(choice, "cluster.topology.placement", flags),
                places_text(choice.found().of_node), fabric_json(traffic, choice));
}

// Refuses hosts that the job's nodes or its placement do not fit.
void check_hosts_of(const PlaceFlags& flags, const JobSpec& spec) {
  const int hosts = flags.hosts > 0 ? flags.hosts : static_cast<int>(spec.hosts.size());
  if (!spec.jobs.empty())
    throw Error(spec.source_of("jobs") +
                ": jobs: one process plays several jobs; leave --hosts out to place them on their "
                "fabric");
  if (!spec.hosts.empty() && hosts != std::ssize(spec.hosts))
    throw Error(spec.source_of("hosts") + ": --hosts " + std::to_string(hosts) + ": hosts lists " +
                std::to_string(spec.hosts.size()) + "; leave --hosts out, or clear the list");
  if (const int nodes = spec.cluster.all_nodes(); hosts > nodes)
    throw Error(spec.source_of("cluster.nodes") + ": cluster.nodes: " + std::to_string(nodes) +
                (nodes == 1 ? " emulated node" : " emulated nodes") + " cannot lie on " +
                std::to_string(hosts) + " hosts; name at most one host a node");
  for (const Host host : spec.placement.host_of_node.rows())
    if (host.value() >= hosts)
      throw Error(spec.source_of("placement") + ": placement names host " + to_string(host) +
                  " of " + std::to_string(hosts) + ", which are numbered from 0");
}

}  // namespace

int verb_place(const Argv& argv) {
  PlaceFlags flags;
  if (!read_flags(argv, flags)) return 0;
  const LoadedJob job = load(flags.job);
  if (!job.spec.slice.empty())
    throw Error(job.spec.source_of("scale.mode") +
                ": scale.mode: place takes jobs of which all nodes are played; use -s "
                "scale.mode=dilate for these, and give a slice's nodes by hand");
  const bool on_hosts = is_on_hosts(flags, job.spec);
  if (on_hosts) check_hosts_of(flags, job.spec);
  check_outputs({{"--output", flags.output}, {"--json", flags.json}});
  Patience patience("planning", true);
  const Workload workload = plan_workload(job.spec);
  const NodeTraffic traffic = traffic_of(job.spec, mean_traffic(job.spec, workload));
  patience.end();
  if (traffic.switches && !on_hosts)
    throw Error(job.spec.file +
                ": its nodes send to switches that sum, and how far these are from a place is not "
                "counted; compare cluster.topology.placement=packed and spread with 'ghostrank "
                "compare'");
  if (traffic.streams.empty())
    throw Error(job.spec.file +
                ": nothing is sent between its emulated nodes; every placement is "
                "alike, so leave placement as it is");
  const Patience searching("placing the nodes", true);
  return on_hosts ? place_on_hosts(flags, job.spec, traffic)
                  : place_on_fabric(flags, job.spec, traffic);
}

}  // namespace ghostrank
