// See load/network.h.
#include "profiles/load/network.h"

#include <arpa/inet.h>
#include <array>
#include <optional>
#include <regex>

#include "profiles/algorithms/algorithms.h"
#include "profiles/input/quantity.h"
#include "profiles/job/leaf_spine.h"

namespace ghostrank {
namespace {

// Links of both directions; each has its own queue.
constexpr std::int64_t kMostLinks = 1 << 22;

// The row with the name that a setting gives.
template <typename Row>
const Row& row_named(const Setting& name, const std::vector<const Row*>& rows) {
  std::vector<std::string> known;
  for (const Row* row : rows) {
    if (row->name == name.text) return *row;
    known.emplace_back(row->name);
  }
  const std::string near = nearest(name.text, known);
  fail(name.mark,
       std::string(name.key->path) + " is " + quote(name.text) +
           (near.empty() ? "; allowed: " + join(known, ", ") : "; did you mean " + near + "?"));
}

// Negative: derive it from the oversubscription.
double uplink_rate(const Settings& in) {
  const Setting& rate = in.at("cluster.topology.uplink_rate");
  if (rate.text == "auto") return -1;
  const std::optional<double> bps = parse_rate(rate.text);
  if (!bps)
    fail(rate.mark, "cluster.topology.uplink_rate: " + quote(rate.text) +
                        " is neither auto nor a rate such as 400Gbps");
  if (in.given("cluster.topology.oversubscription"))
    fail(rate.mark,
         "cluster.topology.uplink_rate and oversubscription both say how fast up-links are; leave "
         "one of them out");
  return *bps;
}

void check_leaves(const Settings& in, const ClusterSpec& cluster) {
  const Setting& leaves = in.at("cluster.topology.leaves");
  const int wanted = cluster.topology.leaves, nics = cluster.nics_per_node;
  const bool rail = cluster.topology.kind == TopologySpec::Kind::rail_optimised;
  if (rail && wanted % nics != 0)
    fail(leaves.mark, "cluster.topology.leaves: " + leaves.text +
                          " cannot be shared by the rails of nodes with " + std::to_string(nics) +
                          " NICs; take a multiple of " + std::to_string(nics));
  if (wanted / (rail ? nics : 1) > cluster.all_nodes())
    fail(leaves.mark, "cluster.topology.leaves: " + leaves.text + " are more than " +
                          std::to_string(cluster.all_nodes()) +
                          " nodes can be connected to; take fewer");
  const std::int64_t links = leaf_spine_of(cluster).links();
  if (links > kMostLinks)
    fail(leaves.given ? leaves.mark : in.at("cluster.topology.kind").mark,
         "cluster.topology: " + std::to_string(links) +
             " links between leaves and spines; at most " + std::to_string(kMostLinks) +
             " are supported, set fewer leaves or spines");
}

bool is_ipv4(const std::string& text) {
  in_addr address{};
  return inet_pton(AF_INET, text.c_str(), &address) == 1;
}

bool is_mac(const std::string& text) {
  static const std::regex kForm("([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}");
  return std::regex_match(text, kForm);
}

}  // namespace

void read_server_placement(const Settings& in, const Algorithms& own, ServerSpec& out) {
  const Setting& name = in.at("servers.placement");
  out.placement = &row_named(name, own.placements());
  out.colocated = !out.placement->machines;
}

void read_network_switch(const Settings& in, JobSpec& out) {
  SwitchSpec& sw = out.network_switch;
  const Setting& target = in.at("switch.target");
  if (target.text == "model" || !is_network(out.fabric.kind)) return;
  for (const auto& [value, name] : kSwitchTargets)
    if (name == target.text) sw.target = value;
  sw.address = in.text("switch.address");
  if (!is_ipv4(sw.address))
    fail(sw.address.empty() ? target.mark : in.at("switch.address").mark,
         "switch.address: " + (sw.address.empty() ? "is missing" : quote(sw.address) + " is none") +
             "; write an IPv4 address in the network of the ranks, such as 10.0.0.254");
  const Setting& mac = in.at("switch.mac");
  if (mac.text != "auto")
    sw.mac = mac.text;
  else if (sw.started())
    sw.mac = "02:00:00:00:ff:01";
  if (!sw.mac.empty() && !is_mac(sw.mac))
    fail(mac.mark, "switch.mac: " + quote(sw.mac) + " is no MAC address such as 02:00:00:00:ff:01");
  sw.ports = in.text("switch.ports");
  sw.network_namespace = in.text("switch.namespace");
  sw.socket = in.text("switch.socket");
  sw.worker_port = static_cast<std::uint16_t>(in.integer("switch.worker_port"));
  sw.loss = in.number("switch.loss");
  sw.loss_seed = static_cast<std::uint64_t>(in.integer("run.seed"));
  if (!sw.started()) return;
  if (sw.ports.find("{node}") == std::string::npos)
    fail(sw.ports.empty() ? target.mark : in.at("switch.ports").mark,
         "switch.ports: the run starts the switch and must know its interfaces; name them with "
         "{node}, as in port{node}");
  if (out.fabric.namespaces.empty())
    fail(target.mark,
         "switch.target: " + target.text +
             " joins nodes that are network namespaces of this machine; set fabric.colocated: wire "
             "and fabric.namespaces, or use switch.target: external");
}

void read_topology(const Settings& in, const Algorithms& own, ClusterSpec& out) {
  TopologySpec& spec = out.topology;
  const std::string& kind = in.text("cluster.topology.kind");
  if (kind == "nonblocking") return;
  spec.kind = kind == "rail_optimised" ? TopologySpec::Kind::rail_optimised
                                       : TopologySpec::Kind::leaf_spine;
  spec.leaves = in.small("cluster.topology.leaves");
  spec.spines = in.small("cluster.topology.spines");
  spec.oversubscription = in.number("cluster.topology.oversubscription");
  spec.uplink_bps = uplink_rate(in);
  spec.link_latency = in.micros("cluster.topology.link_latency_us");
  spec.routing = &row_named(in.at("cluster.topology.routing"), own.routings());
  check_leaves(in, out);
  if (out.nic.rate_bps == 0 && spec.uplink_bps < 0 && spec.oversubscription != 1)
    fail(in.at("cluster.topology.oversubscription").mark,
         "cluster.topology.oversubscription: the NICs have no rate that could be divided; set "
         "cluster.nic.rate, or cluster.topology.uplink_rate");
}

}  // namespace ghostrank
