// See load/sections/network.h.
#include "profiles/load/sections/network.h"

#include <arpa/inet.h>
#include <array>
#include <memory>
#include <optional>
#include <regex>
#include <utility>

#include "collectives/schemes/shared/racks.h"
#include "profiles/algorithms/algorithms.h"
#include "profiles/error.h"
#include "profiles/input/idle.h"
#include "profiles/input/named_text.h"
#include "profiles/input/quantity.h"
#include "profiles/job/direct_fabrics.h"
#include "profiles/job/framing.h"
#include "profiles/job/leaf_spine.h"
#include "profiles/job/switches.h"
#include "profiles/load/files/places.h"
#include "profiles/load/files/topology.h"

namespace ghostrank {
namespace {

// Links of both directions; each has its own queue.
constexpr std::int64_t kMostLinks = 1 << 22;
// Of a torus or dragonfly: each has a table of the ways to it.
constexpr std::int64_t kMostRouters = 1 << 14;
constexpr int kMostAlong = 1024;  // of a dimension

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

// Negative: auto.
double rate_of(const Setting& rate) {
  if (rate.text == "auto") return -1;
  const std::optional<double> bps = parse_rate(rate.text);
  if (!bps)
    fail(rate.mark, std::string(rate.key->path) + ": " + quote(rate.text) +
                        " is neither auto nor a rate such as 400Gbps");
  return *bps;
}

// Negative: derive it from the oversubscription.
double uplink_rate(const Settings& in) {
  const Setting& rate = in.at("cluster.topology.uplink_rate");
  const double bps = rate_of(rate);
  if (bps < 0) return bps;
  if (is_changed(in.at("cluster.topology.oversubscription")))
    fail(rate.mark,
         "cluster.topology.uplink_rate and oversubscription both say how fast up-links are; leave "
         "one of them out");
  return bps;
}

constexpr std::array kKinds{std::pair{TopologySpec::Kind::nonblocking, "nonblocking"},
                            std::pair{TopologySpec::Kind::nonblocking, "single_switch"},
                            std::pair{TopologySpec::Kind::leaf_spine, "leaf_spine"},
                            std::pair{TopologySpec::Kind::rail_optimised, "rail_optimised"},
                            std::pair{TopologySpec::Kind::rail_only, "rail_only"},
                            std::pair{TopologySpec::Kind::fat_tree, "fat_tree"},
                            std::pair{TopologySpec::Kind::torus, "torus"},
                            std::pair{TopologySpec::Kind::dragonfly, "dragonfly"}};

TopologySpec::Kind kind_of(const Setting& kind) {
  std::vector<std::string> names;
  for (const auto& [value, name] : kKinds) {
    if (kind.text == name) return value;
    names.emplace_back(name);
  }
  if (is_topology_file(kind.text)) return TopologySpec::Kind::file;
  const std::string near = nearest(kind.text, names);
  fail(kind.mark, "cluster.topology.kind is " + quote(kind.text) + "; " +
                      (near.empty() ? "allowed: " + join(names, ", ") +
                                          ", or the path of a .csv, .json or .yaml file of links"
                                    : "did you mean " + near + "?"));
}

bool is_direct(TopologySpec::Kind kind) {
  return kind == TopologySpec::Kind::torus || kind == TopologySpec::Kind::dragonfly;
}

void check_links(std::int64_t links, const std::string& fewer, const Setting& at) {
  if (links > kMostLinks)
    fail(at.mark, "cluster.topology: " + std::to_string(links) +
                      " links between switches; at most " + std::to_string(kMostLinks) +
                      " are supported, set fewer " + fewer);
}

std::vector<int> dimensions_of(const Setting& list, const Mark& kind) {
  std::vector<int> out;
  if (list.raw && list.raw->is_list())
    for (const YamlValue& item : list.raw->children) {
      const auto size = parse_integer(item.text);
      if (!item.is_scalar() || !size || *size < 1 || *size > kMostAlong)
        fail(item.mark, "cluster.topology.dimensions: " + description(item) +
                            " is no number of routers from 1 to " + std::to_string(kMostAlong));
      out.push_back(static_cast<int>(*size));
    }
  if (out.empty() || std::ssize(out) > kMostDimensions)
    fail(list.given ? list.mark : kind, "cluster.topology.dimensions: a torus needs 1 to " +
                                            std::to_string(kMostDimensions) +
                                            " numbers of routers, as in dimensions: [4, 4, 2]");
  return out;
}

// Refuses dragonflies whose groups cannot all reach each other, and fabrics that are too large.
void check_routers(const Settings& in, const ClusterSpec& cluster) {
  const TopologySpec& spec = cluster.topology;
  const Setting& kind = in.at("cluster.topology.kind");
  const int nodes = std::max(spec.places, cluster.all_nodes());
  if (const std::int64_t routers = routers_of(cluster, nodes); routers > kMostRouters)
    fail(kind.mark, "cluster.topology: " + std::to_string(routers) + " routers; at most " +
                        std::to_string(kMostRouters) + " are supported");
  const Setting& ports = in.at("cluster.topology.global_links");
  if (spec.kind == TopologySpec::Kind::dragonfly)
    if (const Dragonfly size = dragonfly_of(cluster, nodes); size.groups > 1 && size.between() == 0)
      fail(ports.given ? ports.mark : kind.mark,
           "cluster.topology.global_links: the " +
               std::to_string(std::int64_t{size.routers} * size.global_links) +
               " ports of a group do not reach the other " + std::to_string(size.groups - 1) +
               " groups; set more of them, or more routers");
  check_links(links_between_routers(cluster), "routers", kind);
}

// The links that have failed, and those that are slower.
void read_trouble(const Settings& in, TopologySpec& out) {
  const Setting &failed = in.at("cluster.topology.failed"),
                &degraded = in.at("cluster.topology.degraded");
  if (failed.raw && !failed.raw->is_list())
    fail(failed.mark, "cluster.topology.failed is a list of links, as in [leaf0-spine1]");
  if (failed.raw)
    for (const YamlValue& link : failed.raw->children) out.failed.push_back(link.text);
  if (degraded.raw && !degraded.raw->is_map())
    fail(degraded.mark,
         "cluster.topology.degraded is a mapping from links to rates, as in {leaf0-spine1: "
         "100Gbps}");
  if (!degraded.raw) return;
  for (const YamlValue& link : degraded.raw->children) {
    const std::optional<double> bps = parse_rate(link.text);
    if (!bps || *bps <= 0)
      fail(link.mark, "cluster.topology.degraded: " + quote(link.text) +
                          " is no rate such as 100Gbps; a link without any has failed");
    out.degraded.emplace_back(link.key, *bps);
  }
}

// Refuses numbers of leaves that the nodes cannot be connected to, and fabrics that are too large.
void check_size(const Settings& in, const ClusterSpec& cluster) {
  const Setting& leaves = in.at("cluster.topology.leaves");
  const TopologySpec& spec = cluster.topology;
  const int wanted = spec.leaves, nics = cluster.nics_per_node;
  const bool rail = spec.kind == TopologySpec::Kind::rail_optimised;
  if (const Setting& places = in.at("cluster.topology.places");
      spec.places > 0 && spec.places < cluster.all_nodes())
    fail(places.mark, "cluster.topology.places: the job has " +
                          std::to_string(cluster.all_nodes()) + " nodes; make room for them");
  if (is_direct(spec.kind)) return check_routers(in, cluster);
  if (rail && wanted % nics != 0)
    fail(leaves.mark, "cluster.topology.leaves: " + leaves.text +
                          " cannot be shared by the rails of nodes with " + std::to_string(nics) +
                          " NICs; take a multiple of " + std::to_string(nics));
  if (wanted / (rail ? nics : 1) > fabric_nodes(cluster))
    fail(leaves.mark, "cluster.topology.leaves: " + leaves.text + " are more than " +
                          std::to_string(fabric_nodes(cluster)) +
                          " nodes can be connected to; take fewer");
  std::int64_t links = 0;
  if (spec.kind == TopologySpec::Kind::fat_tree) {
    const FatTree tree = fat_tree_of(cluster);
    links = std::int64_t{2} * tree.pods * tree.spines * (std::int64_t{tree.leaves} + tree.cores);
    if (spec.leaves % tree.pods != 0)
      fail(leaves.mark, "cluster.topology.leaves: " + leaves.text + " cannot be divided among " +
                            std::to_string(tree.pods) + " pods; take a multiple");
    if (const Setting& cores = in.at("cluster.topology.cores"); spec.cores % tree.spines != 0)
      fail(cores.mark, "cluster.topology.cores: " + cores.text + " cannot be divided among the " +
                           std::to_string(tree.spines) + " spines of a pod; take a multiple");
  } else if (spec.kind != TopologySpec::Kind::rail_only) {
    links = leaf_spine_of(cluster).links();
  }
  check_links(links, "leaves or spines", leaves.given ? leaves : in.at("cluster.topology.kind"));
}

// Where the nodes are on the fabric.
void read_places_taken(const Setting& placement, const std::string& near, ClusterSpec& out) {
  using Placement = TopologySpec::Placement;
  constexpr std::array kPlacements{std::pair{"packed", Placement::packed},
                                   std::pair{"spread", Placement::spread},
                                   std::pair{"random", Placement::random}};
  for (const auto& [name, value] : kPlacements)
    if (placement.text == name) {
      out.topology.placement = value;
      return;
    }
  out.topology.placement = Placement::file;
  out.topology.place_of_node = read_places(placement, near, out.all_nodes(), fabric_nodes(out));
}

bool is_ipv4(const std::string& text) {
  in_addr address{};
  return inet_pton(AF_INET, text.c_str(), &address) == 1;
}

bool is_mac(const std::string& text) {
  static const std::regex kForm("([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}");
  return std::regex_match(text, kForm);
}

// The path of the file that a setting names; empty: it names none.
std::string file_of(const Setting& setting, const std::string& near) {
  if (setting.text.empty()) return "";
  if (std::string path = file_named(setting.text, near); !path.empty()) return path;
  fail(setting.mark, std::string(setting.key->path) + ": there is no file " + quote(setting.text) +
                         ", nor next to the job; check the path");
}

// A program of the user's own, on a switch that the run starts.
void read_program(const Settings& in, const std::string& near, SwitchSpec& sw) {
  const Setting &program = in.at("switch.program"), &entries = in.at("switch.entries");
  sw.program = file_of(program, near);
  sw.entries = file_of(entries, near);
  const bool dpdk = sw.target == SwitchTarget::dpdk;
  const std::string compiled = dpdk ? ".spec" : ".json",
                    compiler = dpdk ? "p4c-dpdk" : "p4c-bm2-ss";
  if (!sw.program.empty() && !sw.program.ends_with(compiled) && !sw.program.ends_with(".p4"))
    fail(program.mark, "switch.program: " + quote(program.text) + " is neither .p4 nor " +
                           compiled + "; name P4, or what " + compiler + " makes of it");
  if (sw.program.empty() && !sw.entries.empty())
    fail(entries.mark, "switch.entries are those of a program; name it with switch.program");
  if (!sw.entries.empty() && sw.loss > 0)
    fail(in.at("switch.loss").mark,
         "switch.loss: only ghostrank knows how its own tables lose packets, not those of "
         "switch.entries; use fabric.packets.loss");
  if (!sw.entries.empty() && sw.leaves > 1)
    fail(in.at("switch.leaves").mark,
         "switch.leaves: switch.entries are those of one switch; leave out one of the two");
}

// The nodes are divided evenly among the leaves.
void read_leaves(const Settings& in, int nodes, SwitchSpec& sw) {
  sw.leaves = in.small("switch.leaves");
  if (sw.leaves == 1) return;
  const std::string given = "switch.leaves: " + std::to_string(nodes) + " nodes on " +
                            std::to_string(sw.leaves) + " leaves: ";
  if (sw.leaves > nodes)
    fail(in.at("switch.leaves").mark, given + "some would have none; name fewer leaves");
  if (nodes > sw.leaves * kMostInRack)
    fail(in.at("switch.leaves").mark,
         given + "a switch sums for at most " + std::to_string(kMostInRack) + "; name " +
             std::to_string((nodes + kMostInRack - 1) / kMostInRack) + " leaves or more");
}

// What the run must know of a switch that it starts.
void read_started(const Settings& in, const std::string& near, JobSpec& out) {
  SwitchSpec& sw = out.network_switch;
  const Setting& target = in.at("switch.target");
  read_leaves(in, out.cluster.all_nodes(), sw);
  if (sw.on_p4()) read_program(in, near, sw);
  if (sw.ports.find("{node}") == std::string::npos)
    fail(sw.ports.empty() ? target.mark : in.at("switch.ports").mark,
         "switch.ports: the run starts the switch and must know its interfaces; name them with "
         "{node}, as in port{node}");
  if (sw.nics > 1 && sw.ports.find("{nic}") == std::string::npos)
    fail(in.at("switch.ports").mark,
         "switch.ports: nodes have " + std::to_string(sw.nics) +
             " NICs (cluster.nics_per_node), and the switch a port for each; name them with {node} "
             "and {nic}, as in port{node}r{nic}");
  if (out.fabric.namespaces.empty())
    fail(target.mark,
         "switch.target: " + target.text +
             " joins nodes that are network namespaces of this machine; set fabric.colocated: wire "
             "and fabric.namespaces, or use switch.target: external");
}

}  // namespace

void read_server_placement(const Settings& in, const Algorithms& own, ServerSpec& out) {
  const Setting& name = in.at("servers.placement");
  out.placement = &row_named(name, own.placements());
  out.colocated = !out.placement->machines;
}

void read_network_switch(const Settings& in, const std::string& near, JobSpec& out) {
  SwitchSpec& sw = out.network_switch;
  const Setting& target = in.at("switch.target");
  for (const std::int64_t at : in.integers("switch.fails_at_us"))
    sw.fails_at.push_back(at * kPicosPerMicro);
  std::ranges::sort(sw.fails_at);
  sw.away = in.micros("switch.away_us");
  const double patience = in.number("run.stall_timeout_s");
  if (!sw.fails_at.empty() && in.number("switch.fallback_after_us") == 0 &&
      seconds(sw.away) > patience)
    fail(in.at("switch.away_us").mark,
         "switch.away_us: the switches stay away for longer than a run may stand still "
         "(run.stall_timeout_s), and with switch.fallback_after_us: 0 nobody gives them up; set "
         "switch.fallback_after_us, let them return sooner, or raise run.stall_timeout_s");
  if (target.text == "model" || !is_network(out.fabric.kind)) return;
  for (const auto& [value, name] : kSwitchTargets)
    if (name == target.text) sw.target = value;
  // An external switch or the user's own program is not known to be guarded. A job that gives a
  // time for an external switch claims that it is.
  out.collectives.in_switch.guarded =
      sw.target == SwitchTarget::compiled || (sw.on_p4() && in.text("switch.program").empty()) ||
      (sw.target == SwitchTarget::external && in.given("switch.fallback_after_us"));
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
  sw.nics = out.cluster.gpus_per_node == 1 ? 1 : out.cluster.nics_per_node;
  sw.ports = in.text("switch.ports");
  sw.network_namespace = in.text("switch.namespace");
  sw.socket = in.text("switch.socket");
  if (sw.socket.starts_with(kControllerPrefix) && in.text("switch.packet_elements") == "32")
    fail(in.at("switch.packet_elements").mark,
         "switch.packet_elements: the programs of SwitchML controllers sum packets of 64 or 256 "
         "elements; use one of these");
  sw.worker_port = static_cast<std::uint16_t>(in.integer("switch.worker_port"));
  sw.loss = in.number("switch.loss");
  if (sw.loss > 0 && sw.loss * 65536 < 0.5)
    fail(in.at("switch.loss").mark,
         "switch.loss: " + in.text("switch.loss") +
             " is less than half of 1/65536 (0.0000153), in whose steps switches lose packets; "
             "write 0, or 0.00001 or more");
  sw.loss_seed = static_cast<std::uint64_t>(in.integer("run.seed"));
  if (sw.started()) read_started(in, near, out);
}

QueueSpec read_queues(const Settings& in, const Algorithms& own) {
  QueueSpec out;
  out.buffer = static_cast<std::uint64_t>(in.number("fabric.queues.buffer"));
  out.pause = in.boolean("fabric.queues.pause");
  out.scheduling =
      in.text("fabric.queues.scheduling") == "fair" ? Scheduling::fair : Scheduling::fifo;
  out.control = &row_named(in.at("fabric.queues.congestion_control"), own.congestion_controls());
  out.window = static_cast<std::uint64_t>(in.number("fabric.queues.window"));
  out.mark_from = static_cast<std::uint64_t>(in.number("fabric.queues.mark_from"));
  out.mark_to = static_cast<std::uint64_t>(in.number("fabric.queues.mark_to"));
  out.mark_most = in.number("fabric.queues.mark_share");
  out.retransmit =
      static_cast<Picoseconds>(in.number("fabric.queues.retransmit_us") * kPicosPerMicro);
  if (out.mark_from > out.mark_to)
    fail(in.at("fabric.queues.mark_from").mark,
         "fabric.queues.mark_from lies above fabric.queues.mark_to; packets are marked from the "
         "one to the other");
  return out;
}

Framing read_framing(const Settings& in, std::uint32_t mtu) {
  const Setting& path_mtu = in.at("fabric.path_mtu");
  const Framing framing = framing_named(in.text("fabric.framing"), mtu, path_mtu_of(path_mtu.text));
  const std::uint32_t packet = framing.packet_payload + kRoceHeaders;
  if (in.text("fabric.framing") == "rocev2" && path_mtu.text != "auto" && packet > mtu)
    fail(path_mtu.mark, "fabric.path_mtu: a packet with " + path_mtu.text +
                            " bytes of a message has " + std::to_string(packet) +
                            " bytes, and fabric.packets.mtu is " + std::to_string(mtu) +
                            "; take a smaller path MTU or a larger mtu");
  return framing;
}

QueuePairs read_queue_pairs(const Settings& in, const Algorithms& own) {
  const Setting& count = in.at("fabric.qps_per_connection");
  QueuePairs out{static_cast<std::uint32_t>(count.number), in.boolean("fabric.split_data_on_qps")};
  const Setting& routing = in.at("cluster.topology.routing");
  const Setting& kind = in.at("cluster.topology.kind");
  if (out.several() && kind.text != "nonblocking" && kind.text != "single_switch" &&
      row_named(routing, own.routings()).per == Routing::Per::flowlet)
    fail(count.mark,
         "fabric.qps_per_connection: " + routing.text +
             " chooses for the flowlets of a whole connection, those of its queue pairs are not "
             "modelled; use one queue pair, or cluster.topology.routing: ecmp");
  return out;
}

// Where packets are libfabric's, a value that they do not have would mislead.
int read_dscp(const Settings& in, FabricKind kind) {
  const Setting& dscp = in.at("fabric.dscp");
  if (!dscp.given) return -1;
  if (kind == FabricKind::ofi)
    fail(dscp.mark,
         "fabric.dscp: libfabric opens the sockets of fabric ofi, and its providers for TCP have "
         "no setting for it; use fabric.kind: packets, or let the kernel mark the packets "
         "(nftables: ip dscp set)");
  return static_cast<int>(dscp.number);
}

void read_topology(const Settings& in, const Algorithms& own, const std::string& near,
                   ClusterSpec& out) {
  TopologySpec& spec = out.topology;
  const Setting& kind = in.at("cluster.topology.kind");
  spec.kind = kind_of(kind);
  if (spec.kind == TopologySpec::Kind::nonblocking) return;
  spec.places = in.small("cluster.topology.places");
  spec.leaves = in.small("cluster.topology.leaves");
  spec.spines = in.small("cluster.topology.spines");
  spec.pods = in.small("cluster.topology.pods");
  spec.cores = in.small("cluster.topology.cores");
  spec.oversubscription = in.number("cluster.topology.oversubscription");
  spec.pod_oversubscription = in.number("cluster.topology.pod_oversubscription");
  spec.uplink_bps = uplink_rate(in);
  if (spec.kind == TopologySpec::Kind::torus)
    spec.dimensions = dimensions_of(in.at("cluster.topology.dimensions"), kind.mark);
  spec.groups = in.small("cluster.topology.groups");
  spec.routers = in.small("cluster.topology.routers");
  spec.global_links = in.small("cluster.topology.global_links");
  spec.link_bps = rate_of(in.at("cluster.topology.link_rate"));
  spec.global_bps = rate_of(in.at("cluster.topology.global_rate"));
  spec.link_latency = in.micros("cluster.topology.link_latency_us");
  spec.flowlet_gap = in.micros("cluster.topology.flowlet_gap_us");
  spec.routing = &row_named(in.at("cluster.topology.routing"), own.routings());
  spec.seed = static_cast<std::uint64_t>(in.integer("run.seed"));
  read_trouble(in, spec);
  if (spec.kind == TopologySpec::Kind::file) {
    spec.file = std::make_shared<const SwitchGraph>(read_topology_file(kind, near, out));
  } else {
    check_size(in, out);
  }
  read_places_taken(in.at("cluster.topology.placement"), near, out);
  if (spec.kind != TopologySpec::Kind::rail_only && spec.kind != TopologySpec::Kind::file &&
      out.nic.rate_bps == 0 && spec.uplink_bps < 0 &&
      (spec.oversubscription != 1 || spec.pod_oversubscription != 1))
    fail(in.at("cluster.topology.oversubscription").mark,
         "cluster.topology.oversubscription: the NICs have no rate that could be divided; set "
         "cluster.nic.rate, or cluster.topology.uplink_rate");
  try {
    switches_of(out);  // links that fail must exist, and leave every NIC a path
  } catch (const Error& error) {
    const bool degraded = std::string_view(error.what()).find(".degraded") != std::string::npos;
    const Setting& at = degraded               ? in.at("cluster.topology.degraded")
                        : !spec.failed.empty() ? in.at("cluster.topology.failed")
                                               : kind;
    fail(at.mark, error.what());
  }
}

}  // namespace ghostrank
