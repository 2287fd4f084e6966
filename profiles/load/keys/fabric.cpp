// Keys of a job: what carries messages.
#include <array>

#include "profiles/load/keys/tables.h"

namespace ghostrank::job_tables {
namespace {

// Schemes that send packets, which may be lost; the others send messages.
constexpr std::string_view kWithPackets = "switchml atp omnireduce omnireduce_switch";

constexpr std::array kKeys{
    Key{"fabric.kind", KeyType::choice, "memory",
        "what carries messages: memory inside one process, libfabric, UDP packets (kept in order "
        "and sent again if lost, between the namespaces of one process), or a modelled network in "
        "virtual time",
        0, 0, "memory ofi packets virtual"},
    Key{"fabric.network", KeyType::choice, "loggp",
        "how the modelled network is shared: loggp: message by message, first come, first served; "
        "flow: calls between nodes are flows with max-min fair rates; packet: packet by packet, "
        "for small fabrics (fabric.queues)",
        0, 0, "loggp flow packet"}
        .on("virtual"),
    Key{"fabric.queues.buffer", KeyType::size, "2MiB",
        "bytes that a switch has for each of its ports", 1, kMaxSize}
        .on("virtual")
        .where("fabric.network", "packet"),
    Key{"fabric.queues.pause", KeyType::boolean, "true",
        "priority flow control: a switch stops the port that fills its buffer; false: packets that "
        "find it full are lost"}
        .on("virtual")
        .where("fabric.network", "packet"),
    Key{"fabric.queues.scheduling", KeyType::choice, "fifo",
        "which packet a port of a switch sends next: the first that came, or one of each "
        "connection in turn (by bytes)",
        0, 0, "fifo fair"}
        .on("virtual")
        .where("fabric.network", "packet"),
    Key{"fabric.queues.congestion_control", KeyType::string, "dcqcn",
        "what slows a sender down: dcqcn: notices of marked packets (ECN); none: nothing but "
        "pauses and its window; or a plugin's"}
        .on("virtual")
        .where("fabric.network", "packet"),
    Key{"fabric.queues.window", KeyType::size, "0",
        "bytes of a connection that may be under way, at least one packet; 0: unlimited", 0,
        kMaxSize}
        .on("virtual")
        .where("fabric.network", "packet"),
    Key{"fabric.queues.mark_from", KeyType::size, "0",
        "a queue marks packets from so many bytes on; used with mark_to", 0, kMaxSize}
        .on("virtual")
        .where("fabric.network", "packet")
        .unless("fabric.queues.congestion_control", "none"),
    Key{"fabric.queues.mark_to", KeyType::size, "0",
        "and all of them from so many on; 0: marks from 50 KB to 2 MB at 400 Gb/s, in proportion "
        "to the port's rate",
        0, kMaxSize}
        .on("virtual")
        .where("fabric.network", "packet")
        .unless("fabric.queues.congestion_control", "none"),
    Key{"fabric.queues.mark_share", KeyType::number, "0.01",
        "share of packets that is marked just below mark_to", 0, 1}
        .on("virtual")
        .where("fabric.network", "packet")
        .unless("fabric.queues.congestion_control", "none"),
    Key{"fabric.queues.retransmit_us", KeyType::number, "1000",
        "a sender begins again after once to twice so long without an acknowledgement, and gives "
        "up after seven times in a row",
        1, kMaxMicros}
        .on("virtual")
        .where("fabric.network", "packet"),
    Key{"fabric.provider", KeyType::string, "auto", "libfabric provider"}.on("ofi"),
    Key{"fabric.bind", KeyType::string, "", "local address or interface; empty: chosen"}.on(
        "ofi packets"),
    Key{"fabric.flows", KeyType::choice, "process",
        "what has its own connection, and so its own 5-tuple, on the wire: a pair of "
        "processes, of "
        "NICs, or a library's connection (communicator, channel, source, target)",
        0, 0, "process nic connection"}
        .on("ofi packets"),
    Key{"fabric.colocated", KeyType::choice, "memory",
        "emulated nodes that share a process: messages move in memory, are only timed, or leave "
        "through the network (ofi)",
        0, 0, "memory model wire"},
    Key{"fabric.frames", KeyType::string, "auto",
        "small messages of a flow leave together, in frames of up to so many bytes; auto: 64KiB "
        "for "
        "flows: process, else off; off: every message by itself"}
        .on("ofi"),
    Key{"fabric.namespaces", KeyType::string, "",
        "network namespace of each emulated node, as in gr{node} (a name in "
        "/run/netns, or a path); empty: that of the process"}
        .on("ofi packets")
        .where("fabric.colocated", "wire"),
    Key{"fabric.inside_node", KeyType::choice, "model",
        "a call of a group wholly inside a node: one modelled delay, or message by message (verify "
        "and Gloo always play messages)",
        0, 0, "model messages"},
    Key{"fabric.payload", KeyType::choice, "untouched",
        "messages inside a process: hand over the descriptor, or copy every byte", 0, 0,
        "untouched copied"}
        .on("memory ofi packets"),
    Key{"fabric.framing", KeyType::choice, "none",
        "what a modelled link carries besides a message's bytes: none, or the headers, checksums "
        "and gaps of its packets",
        0, 0, "none ethernet tcp udp rocev2"},
    Key{"fabric.packets.loss", KeyType::number, "0",
        "share of schemes' packets between nodes that are lost on purpose, drawn from run.seed", 0,
        0.99}
        .with_schemes(kWithPackets),
    Key{"fabric.packets.duplicates", KeyType::number, "0", "share that comes twice", 0, 0.99}
        .with_schemes(kWithPackets),
    Key{"fabric.packets.reordering", KeyType::number, "0",
        "share that comes late, behind packets sent after it; on ofi they are sent late", 0, 0.99}
        .with_schemes(kWithPackets),
    Key{"fabric.packets.mtu", KeyType::integer, "9000",
        "bytes of the largest IP packet: of schemes' packets, of fabric.framing, and of "
        "fabric.network: packet",
        576, 65535},
    Key{"fabric.path_mtu", KeyType::choice, "auto",
        "bytes of a message in each packet of rocev2: the path MTU of the queue pairs; auto: the "
        "largest that fits fabric.packets.mtu, of 1024 and 4096",
        0, 0, "auto 256 512 1024 2048 4096"}
        .where("fabric.framing", "rocev2"),
    Key{"fabric.qps_per_connection", KeyType::integer, "1",
        "RDMA queue pairs of every connection between two NICs, each with a source port of its "
        "own, which ECMP hashes (NCCL_IB_QPS_PER_CONNECTION)",
        1, 128}
        .on("memory virtual")
        .unless("cluster.topology.routing", "spray"),
    Key{"fabric.split_data_on_qps", KeyType::boolean, "false",
        "true: every message in as many parts as there are queue pairs, each over one; false: "
        "messages take them in turn (NCCL_IB_SPLIT_DATA_ON_QPS)"}
        .on("memory virtual")
        .unless("fabric.qps_per_connection", "1")
        .unless("cluster.topology.routing", "spray"),
    Key{"fabric.dscp", KeyType::integer, kAbsent,
        "differentiated services code point of all packets between nodes", 0, 63}
        .on("packets"),
    Key{"fabric.wire_op", KeyType::string, kAbsent, "RDMA operation", 0, 0, "",
        "libfabric chooses the operation of a message itself", kLater},
    Key{"fabric.pfc_priority", KeyType::integer, kAbsent, "RDMA priority", 0, 0, "",
        "only RDMA verbs could set it, over which ghostrank has not been run, and the modelled "
        "network has one priority",
        kLater},
    Key{"fabric.gid_index", KeyType::integer, kAbsent, "RDMA address", 0, 0, "",
        "only RDMA verbs could set it, over which ghostrank has not been run", kLater}};

}  // namespace

std::span<const Key> fabric() { return kKeys; }

}  // namespace ghostrank::job_tables
