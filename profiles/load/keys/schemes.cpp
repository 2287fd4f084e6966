// Keys of a job: what schemes bring along: servers, switches, their options.
#include <array>

#include "profiles/load/keys/tables.h"

namespace ghostrank::job_tables {
namespace {

// Schemes whose packets a switch sums, and that send again what is lost.
constexpr std::string_view kByPackets = "switchml atp omnireduce_switch";

constexpr std::array kKeys{
    Key{"servers.count", KeyType::integer, "0",
        "machines for the helpers of schemes (collectives/agent.h), numbered after the nodes of "
        "GPUs",
        0, 1e6},
    Key{"servers.placement", KeyType::string, "dedicated",
        "where helpers go: dedicated: a node for each server; colocated: beside the GPUs of the "
        "nodes in turn, with their NICs; mixed: the dedicated ones, then one beside the GPUs of "
        "every node; or a plugin's"},
    Key{"servers.nics", KeyType::integer, "1", "NICs of a dedicated server", 1, 1024}
        .unless("servers.count", "0")
        .unless("servers.placement", "colocated"),
    Key{"servers.nic.rate", KeyType::rate, "400Gbps", "rate of a server's NIC, each direction", 0,
        kMaxRate}
        .unless("servers.count", "0")
        .unless("servers.placement", "colocated"),
    Key{"servers.nic.latency_us", KeyType::number, "2",
        "one-way latency from NIC to NIC between servers; between a server and a GPU's node, the "
        "mean of both",
        0, kMaxMicros}
        .unless("servers.count", "0")
        .unless("servers.placement", "colocated"),
    Key{"servers.cores", KeyType::integer, "8",
        "cores that sum, of every machine with servers; a key stays on one of them", 1, 4096}
        .with_schemes(),
    Key{"servers.add_GBps", KeyType::number, "20",
        "bytes that a core adds or copies a second, in 1e9, as `ghostrank calibrate host` measures "
        "them; 0: takes no time",
        0, 1e6}
        .with_schemes(),
    Key{"servers.optimizer_GBps", KeyType::number, "10",
        "bytes of weights that a core steps a second, in 1e9; 0: takes no time", 0, 1e6}
        .with_schemes("phub phub_racks"),
    Key{"servers.memory_GBps", KeyType::number, "80",
        "bytes that the memory of such a machine reads and writes a second, for all cores, in 1e9: "
        "2 per byte copied, 3 per byte added, 5 per byte of weights stepped; 0: takes no time",
        0, 1e6}
        .with_schemes(),
    Key{"servers.fails", KeyType::integer, "-1",
        "number of a server that stops and never returns; -1: none does", -1, 1e6}
        .on("memory virtual")
        .of("byteps"),
    Key{"servers.fails_at_us", KeyType::number, "0", "when it does, in the measured iterations", 0,
        kMaxMicros}
        .unless("servers.fails", "-1"),
    Key{"switch.target", KeyType::choice, "model",
        "what plays the switch of schemes such as switchml: a model in the network of memory and "
        "virtual, on ofi software on one of the servers; or a real one between the nodes: "
        "ghostrank's C++ switch or its P4 program on DPDK or on bmv2, which the run starts on this "
        "machine, or one that runs",
        0, 0, "model compiled dpdk bmv2 external"}
        .on("ofi packets"),
    Key{"switch.address", KeyType::string, "",
        "IPv4 address of the switch, in the network of the ranks"}
        .on("ofi packets")
        .where("switch.target", "compiled dpdk bmv2 external"),
    Key{"switch.mac", KeyType::string, "auto",
        "its MAC address, made known to the ranks' interfaces (needs root); auto: "
        "02:00:00:00:ff:01 of a switch that is started, else ARP finds it"}
        .on("ofi packets")
        .where("switch.target", "compiled dpdk bmv2 external"),
    Key{"switch.ports", KeyType::string, "",
        "the switch's interface to each emulated node, as in port{node}; to each NIC of nodes that "
        "have several, as in port{node}r{nic}"}
        .on("ofi packets")
        .where("switch.target", "compiled dpdk bmv2"),
    Key{"switch.namespace", KeyType::string, "",
        "network namespace of these interfaces; empty: that of the process"}
        .on("ofi packets")
        .where("switch.target", "compiled dpdk bmv2"),
    Key{"switch.leaves", KeyType::integer, "1",
        "leaf switches, which neighbouring nodes share, with a spine above them: for groups of "
        "more than 32 nodes; 1: one switch",
        1, 32}
        .on("ofi packets")
        .where("switch.target", "compiled dpdk bmv2"),
    Key{"switch.loss", KeyType::number, "0",
        "share of a scheme's packets that the switch loses on purpose at every port, each way, "
        "in steps of 1/65536, drawn from run.seed",
        0, 0.99}
        .on("ofi packets")
        .where("switch.target", "compiled dpdk bmv2"),
    Key{"switch.program", KeyType::string, "",
        "another program than ghostrank's, as given or next to the job: .p4, which p4c-dpdk or "
        "p4c-bm2-ss on PATH compiles, or the .spec (dpdk) or .json (bmv2) that it makes; without "
        "switch.entries one with the same tables"}
        .on("ofi packets")
        .where("switch.target", "dpdk bmv2"),
    Key{"switch.entries", KeyType::string, "",
        "its table entries and registers, as given or next to the job (docs/switch.md): the run "
        "then tells the switch nothing else"}
        .on("ofi packets")
        .where("switch.target", "dpdk bmv2"),
    Key{"switch.socket", KeyType::string, "",
        "control socket of the switch (`ghostrank switch run --socket`), to tell it of the job, or "
        "grpc:HOST:PORT of a controller that SwitchML publishes; empty: it knows"}
        .on("ofi packets")
        .where("switch.target", "external"),
    Key{"switch.worker_port", KeyType::integer, "4000",
        "UDP port of the ranks to which the switch sends; every further communicator has the "
        "next but fifteen",
        1024, 65000}
        .on("ofi packets")
        .where("switch.target", "compiled dpdk bmv2 external"),
    Key{"switch.slots", KeyType::integer, "512",
        "slots of each communicator on the switch of a rail, and so the most packets that a worker "
        "has in flight; of orca, elmo and unicast the most runs of packets of the root",
        1, 16384}
        .with_schemes("switchml sharp atp omnireduce_switch orca elmo unicast"),
    Key{"switch.packet_elements", KeyType::choice, "256", "elements of a packet", 0, 0, "32 64 256"}
        .with_schemes("switchml omnireduce_switch orca elmo unicast"),
    Key{"switch.memory_slots", KeyType::integer, "8192",
        "slots of one switch, for all communicators that it serves; those of a rail and a rack of "
        "32 nodes share one",
        1, 1'000'000}
        .on("memory virtual")
        .with_schemes(kByPackets),
    Key{"switch.packet_rate_mpps", KeyType::number, "0",
        "millions of packets that one switch takes per second, of all communicators; 0: any number",
        0, 1e6}
        .on("memory virtual")
        .with_schemes(kByPackets),
    Key{"switch.trees", KeyType::integer, "1",
        "trees for streaming that a switch of sharp has active at a time; a communicator that gets "
        "none reduces around a ring",
        0, 1'000'000}
        .with_schemes("sharp"),
    Key{"switch.trees_of", KeyType::choice, "switch",
        "what has so many trees: the switch (Quantum), or each of its ports (Quantum-2)", 0, 0,
        "switch port"}
        .with_schemes("sharp"),
    Key{"switch.timeout_us", KeyType::auto_number, "auto",
        "time without an answer after which a packet is sent again; auto: 10000", 1, kMaxMicros}
        .with_schemes(kByPackets),
    Key{"switch.fallback_after_us", KeyType::number, "1000000",
        "silence of the switch after which the ranks sum without it, for the rest of the job; "
        "0: never (docs/switch.md)",
        0, kMaxMicros}
        .with_schemes("switchml omnireduce_switch"),
    Key{"switch.fails_at_us", KeyType::integers, "[]",
        "times in the measured iterations at which modelled switches fail: what they held is gone",
        0, kMaxMicros}
        .on("memory virtual")
        .with_schemes("switchml omnireduce_switch"),
    Key{"switch.away_us", KeyType::number, "0",
        "time that the switches stay away after they have failed", 0, kMaxMicros}
        .on("memory virtual")
        .with_schemes("switchml omnireduce_switch"),
    Key{"omnireduce.block", KeyType::integer, "256",
        "elements of a block, which is sent if one of them is not zero", 1, 1e6}
        .with_schemes("omnireduce"),
    Key{"omnireduce.carriage", KeyType::choice, "reliable",
        "reliable: messages that are never lost, Algorithm 1; packets: packets of a block each "
        "that may be lost, Algorithm 2",
        0, 0, "reliable packets"}
        .with_schemes("omnireduce"),
    Key{"omnireduce.columns", KeyType::integer, "4",
        "most blocks of a message, each of a column of its own (block fusion)", 1, 1024}
        .with_schemes("omnireduce")
        .where("omnireduce.carriage", "reliable"),
    Key{"omnireduce.slots", KeyType::integer, "64",
        "slots of each aggregator, and so the most messages that a rank has on the way to it", 1,
        32768}
        .with_schemes("omnireduce"),
    Key{"omnireduce.timeout_us", KeyType::number, "10000",
        "time without an answer after which a packet is sent again", 1, kMaxMicros}
        .with_schemes("omnireduce")
        .where("omnireduce.carriage", "packets")};

}  // namespace

std::span<const Key> schemes() { return kKeys; }

}  // namespace ghostrank::job_tables
