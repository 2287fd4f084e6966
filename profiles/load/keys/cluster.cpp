// Keys of a job: the emulated cluster: nodes, NICs, topology.
#include <array>

#include "collectives/node_links.h"
#include "profiles/load/keys/tables.h"

namespace ghostrank::job_tables {
namespace {

constexpr std::array kKeys{
    Key{"cluster.base", KeyType::string, "",
        "profile in profiles/clusters (or a path) whose values are taken where none are given"},
    Key{"cluster.nodes", KeyType::integer, "1", "emulated nodes", 1, 1e6},
    Key{"cluster.gpus_per_node", KeyType::integer, "8", "GPUs, and so ranks, of a node", 1, 1024},
    Key{"cluster.nics_per_node", KeyType::integer, "8", "NICs of a node", 1, 1024},
    Key{"cluster.nic.rate", KeyType::rate, "400Gbps", "rate of a NIC, each direction", 0, kMaxRate},
    Key{"cluster.nic.rates", KeyType::string, "",
        "CSV file of rates that change in time, as seconds,rate; or with columns such as n0, n0-3 "
        "and n2.nic1 for some NICs; none is above cluster.nic.rate, by which libraries go on "
        "choosing"},
    Key{"cluster.nic.latency_us", KeyType::number, "2",
        "one-way latency from NIC to NIC through an idle fabric; only recorded on ofi", 0,
        kMaxMicros},
    Key{"cluster.intra_node.rate", KeyType::rate, "3600Gbps",
        "rate of a GPU's links inside its node, each direction; with links: of what carries its "
        "messages to GPUs that it has no link to, 96Gbps if it is not given (PCIe 3.0)",
        0, kMaxRate},
    Key{"cluster.intra_node.latency_us", KeyType::number, "1", "one way inside a node", 0,
        kMaxMicros},
    Key{"cluster.intra_node.links", KeyType::string, "none",
        "links between a node's GPUs, each with its own rate: dgx-1p, dgx-1v, or a CSV file "
        "a,b,rate, as given or next to the job; none: all GPUs are alike, as behind an NVLink "
        "switch"},
    Key{"cluster.intra_node.gpus", KeyType::integers, "[]",
        "which GPUs of such a node the job has, in the order of its ranks; []: the first "
        "gpus_per_node. If that is not given, it is their number",
        0, kMostLinkedGpus - 1}
        .unless("cluster.intra_node.links", "none"),
    Key{"cluster.storage_nodes", KeyType::integer, "0",
        "storage nodes for checkpoints and data, numbered after the other nodes and with the same "
        "NICs",
        0, 1e6},
    Key{"cluster.topology.kind", KeyType::string, "nonblocking",
        "the modelled fabric between nodes: nonblocking or single_switch: one ideal switch; "
        "leaf_spine: leaves and spines, each node on one leaf; rail_optimised: the same, NIC i of "
        "a node on a leaf of rail i; rail_only: a switch for each rail; fat_tree: leaves, spines "
        "in pods, cores; torus: a grid of routers; dragonfly: groups of routers; or a file of "
        "links (.csv, .json, .yaml), as given or next to the job; a real one is as it is"}
        .on("memory virtual"),
    Key{"cluster.topology.places", KeyType::integer, "0",
        "nodes that the fabric has room for; 0: as many as the job has", 0, 1e6}
        .on("memory virtual")
        .where("cluster.topology.kind", "leaf_spine rail_optimised fat_tree torus dragonfly"),
    Key{"cluster.topology.placement", KeyType::string, "packed",
        "which of these places the job's nodes take: packed: the first; spread: in turn over the "
        "pods of a fat tree or the groups of a dragonfly, else over the leaves; random: drawn from "
        "run.seed; or a file with lines of NODES PLACES, as 0-3 8-11"}
        .on("memory virtual")
        .where("cluster.topology.kind", "leaf_spine rail_optimised fat_tree torus dragonfly"),
    Key{"cluster.topology.pods", KeyType::integer, "0",
        "pods of leaves and spines; 0: one for every 32 leaves", 0, 1e6}
        .on("memory virtual")
        .where("cluster.topology.kind", "fat_tree"),
    Key{"cluster.topology.leaves", KeyType::integer, "0",
        "leaf switches, which neighbouring nodes share; 0: one for every 32 NICs, two at least; "
        "rail_optimised: one a rail for every 32 nodes",
        0, 1e6}
        .on("memory virtual")
        .where("cluster.topology.kind", "leaf_spine rail_optimised fat_tree"),
    Key{"cluster.topology.spines", KeyType::integer, "0",
        "spine switches, with a link to every leaf; fat_tree: of a pod; 0: so many that a link has "
        "a NIC's rate, at most 64",
        0, 1e6}
        .on("memory virtual")
        .where("cluster.topology.kind", "leaf_spine rail_optimised fat_tree"),
    Key{"cluster.topology.cores", KeyType::integer, "0",
        "core switches, each connected to one spine of every pod; 0: so many that a link is about "
        "as fast as those below, at most 64 a spine",
        0, 1e6}
        .on("memory virtual")
        .where("cluster.topology.kind", "fat_tree"),
    Key{"cluster.topology.oversubscription", KeyType::number, "1",
        "rates of a leaf's NICs to those of its up-links", 0.001, 1e6}
        .on("memory virtual")
        .where("cluster.topology.kind", "leaf_spine rail_optimised fat_tree"),
    Key{"cluster.topology.pod_oversubscription", KeyType::number, "1",
        "rates of a spine's links down to those of its links to cores", 0.001, 1e6}
        .on("memory virtual")
        .where("cluster.topology.kind", "fat_tree"),
    Key{"cluster.topology.uplink_rate", KeyType::string, "auto",
        "rate of a link between a leaf and a spine, each direction; auto: by oversubscription"}
        .on("memory virtual")
        .where("cluster.topology.kind", "leaf_spine rail_optimised fat_tree"),
    Key{"cluster.topology.dimensions", KeyType::any, "[]",
        "routers of a torus along each of its dimensions, at most 6: a list such as [4, 4, 2]; its "
        "nodes are spread evenly over the routers, the first dimension first"}
        .on("memory virtual")
        .where("cluster.topology.kind", "torus"),
    Key{"cluster.topology.groups", KeyType::integer, "0",
        "groups of routers; 0: as many as the nodes need", 0, 1e6}
        .on("memory virtual")
        .where("cluster.topology.kind", "dragonfly"),
    Key{"cluster.topology.routers", KeyType::integer, "0",
        "routers of a group, all connected to each other; 0: twice as many as a router has NICs, "
        "or fewer where nodes are few",
        0, 1e5}
        .on("memory virtual")
        .where("cluster.topology.kind", "dragonfly"),
    Key{"cluster.topology.global_links", KeyType::integer, "0",
        "ports of a router for cables to other groups; 0: as many as it has NICs, or what the "
        "groups need",
        0, 1e5}
        .on("memory virtual")
        .where("cluster.topology.kind", "dragonfly"),
    Key{"cluster.topology.link_rate", KeyType::string, "auto",
        "rate of a link between routers, each direction; auto: that of a NIC"}
        .on("memory virtual")
        .where("cluster.topology.kind", "torus dragonfly"),
    Key{"cluster.topology.global_rate", KeyType::string, "auto",
        "rate of a link between groups, each direction; auto: link_rate"}
        .on("memory virtual")
        .where("cluster.topology.kind", "dragonfly"),
    Key{"cluster.topology.failed", KeyType::any, "[]",
        "links that have failed, both directions: a list of names such as leaf0-spine1"}
        .on("memory virtual")
        .unless("cluster.topology.kind", "nonblocking single_switch rail_only"),
    Key{"cluster.topology.degraded", KeyType::any, "{}",
        "links with another rate, both directions: a mapping such as {leaf0-spine1: 100Gbps}"}
        .on("memory virtual")
        .unless("cluster.topology.kind", "nonblocking single_switch rail_only"),
    Key{"cluster.topology.link_latency_us", KeyType::number, "0",
        "latency that each link between switches adds to cluster.nic.latency_us", 0, kMaxMicros}
        .on("memory virtual")
        .unless("cluster.topology.kind", "nonblocking single_switch rail_only"),
    Key{"cluster.topology.routing", KeyType::string, "ecmp",
        "which of the shortest paths: ecmp: by a hash of the connection; static: by the target's "
        "NIC (D-mod-K); spray: message by message in turn; flowlet: drawn anew for each burst of a "
        "connection; or a plugin's"}
        .on("memory virtual")
        .unless("cluster.topology.kind", "nonblocking single_switch rail_only"),
    Key{"cluster.topology.flowlet_gap_us", KeyType::number, "50",
        "routings that choose for flowlets: a connection that has sent nothing for longer begins a "
        "new one; where that is less than the paths' delays differ, messages wait for earlier ones",
        0, kMaxMicros}
        .on("memory virtual")
        .unless("cluster.topology.kind", "nonblocking single_switch rail_only")
        .unless("cluster.topology.routing", "ecmp static spray")};

}  // namespace

std::span<const Key> cluster() { return kKeys; }

}  // namespace ghostrank::job_tables
