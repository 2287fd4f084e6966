// Error texts of wrong jobs. Most are compared in full, because users act on the whole text.
#include <gtest/gtest.h>

#include "profiles/error.h"
#include "profiles/load/load.h"
#include "tests/profiles/load/texts.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

using test::kHead;
using test::load_error;

TEST(JobErrors, SuggestTheNearestKey) {
  EXPECT_EQ(load_error(kHead + "cluster:\n  node: 4\n"),
            "job.yaml:5:3: unknown key 'cluster.node'; did you mean cluster.nodes?");
  EXPECT_EQ(load_error(kHead + "clutser: {nodes: 4}\n"),
            "job.yaml:4:1: unknown key 'clutser'; did you mean cluster?");
  EXPECT_EQ(load_error(kHead + "iterations: 4\n"),
            "job.yaml:4:1: unknown key 'iterations'; did you mean run.iterations?");
  for (const char* tp : {"tensor", "tensor_parallel", "tensor_model_parallel_size"})
    EXPECT_EQ(
        load_error(kHead + "parallel: {" + tp + ": 8}\n"),
        "job.yaml:4:12: unknown key 'parallel." + std::string(tp) + "'; did you mean parallel.tp?");
  EXPECT_EQ(load_error(kHead + "parallel: {bucket: 8}\n"),
            "job.yaml:4:12: unknown key 'parallel.bucket'; did you mean parallel.bucket_cap_mb or "
            "parallel.bucket_size?");
  EXPECT_EQ(load_error(kHead, {"clutser.node=4"}),
            "-s 'clutser.node=4': unknown key 'clutser.node'; did you mean cluster.nodes?");
  EXPECT_EQ(load_error(kHead + "run: {zzzzzzzzzz: 4}\n"),
            "job.yaml:4:7: unknown key 'run.zzzzzzzzzz'; known here: run.iterations, run.warmup, "
            "run.min_seconds, run.verify, run.seed, run.jitter, run.compute_slowdown, "
            "run.stall_timeout_s, "
            "run.shards, run.probe_ms, "
            "run.duration, run.until");
}

TEST(JobErrors, RefuseKeysWithDotsInFiles) {
  EXPECT_EQ(load_error(kHead + "cluster.nodes: 4\n"),
            "job.yaml:4:1: unknown key 'cluster.nodes'; keys of a file have no dots: write "
            "cluster: {nodes: ...}");
  EXPECT_EQ(load_error(kHead + "cluster: {nic.rate: 1Gbps}\n"),
            "job.yaml:4:11: unknown key 'nic.rate'; keys of a file have no dots: write "
            "nic: {rate: ...}");
  EXPECT_EQ(load_error(kHead, {"device={base: h100-sxm, kernels.matmul.peak: 0.1}"}),
            "-s 'device={base: h100-sxm, kernels.matmul.peak: 0.1}': unknown key "
            "'kernels.matmul.peak'; keys of a file have no dots: write kernels: {matmul: {peak: "
            "...}}");
}

TEST(JobErrors, SayWhatWasFoundAndWhatIsAllowed) {
  EXPECT_EQ(load_error(kHead + "run: {iterations: many}\n"),
            "job.yaml:4:19: run.iterations is 'many'; write an integer from 1 to 1000000");
  EXPECT_EQ(load_error(kHead + "run: {iterations: 0}\n"),
            "job.yaml:4:19: run.iterations is '0'; write an integer from 1 to 1000000");
  EXPECT_EQ(load_error(kHead + "run: {verify: yes}\n"),
            "job.yaml:4:15: run.verify is 'yes'; write true or false");
  EXPECT_EQ(load_error(kHead + "run: {seed: [1]}\n"),
            "job.yaml:4:13: run.seed is a list; write an integer from 0 to 9007199254740991");
  EXPECT_EQ(load_error(kHead + "cluster: {nic: {rate: 400}}\n"),
            "job.yaml:4:23: cluster.nic.rate is '400'; write a rate such as 400Gbps, or unlimited");
  EXPECT_EQ(load_error(kHead + "collectives: {slice: 4KB}\n"),
            "job.yaml:4:22: collectives.slice is '4KB'; write a size such as 512KiB or 4M (powers "
            "of 1024)");
  EXPECT_EQ(load_error(kHead + "scale: {dilation: 0.5}\n"),
            "job.yaml:4:19: scale.dilation is '0.5'; write auto or a number from 1 to 1000000000");
  EXPECT_EQ(load_error(kHead + "parallel: {launch: late}\n"),
            "job.yaml:4:20: parallel.launch is 'late'; allowed: overlap, after_backward, flat");
  EXPECT_EQ(load_error(kHead + "run: 5\n"),
            "job.yaml:4:6: run is '5'; write a mapping of its keys");
  EXPECT_EQ(load_error(kHead + "collectives: {allreduce: rnig}\n"),
            "job.yaml:4:26: collectives.allreduce is 'rnig'; did you mean ring?");
}

TEST(JobErrors, SayWhatTheWireNeeds) {
  EXPECT_EQ(
      load_error(kHead, {"fabric.colocated=wire"}),
      "-s 'fabric.colocated=wire': fabric.colocated means nothing to fabric memory; leave it out, "
      "or use fabric.kind: ofi or packets");
  EXPECT_EQ(load_error(kHead, {"fabric.kind=ofi", "fabric.namespaces=gr{node}"}),
            "-s 'fabric.namespaces=gr{node}': fabric.namespaces means nothing where "
            "fabric.colocated is memory; leave it out, or use fabric.colocated: wire");
}

TEST(JobErrors, NameAProgramOfASwitchThatIsNotThere) {
  const auto expect = [](const std::string& more, const std::string& message) {
    const std::string said =
        load_error(kHead +
                   "fabric: {kind: packets, colocated: wire, namespaces: 'gr{node}'}\n"
                   "switch: {address: 10.0.0.9, ports: 'p{node}', " +
                   (more.starts_with("target") ? "" : "target: dpdk, ") + more + "}\n");
    EXPECT_NE(said.find(message), std::string::npos) << said;
  };
  expect("program: none.spec",
         "switch.program: there is no file 'none.spec', nor next to the job; check the path");
  expect("program: /etc/passwd", "switch.program: '/etc/passwd' is neither .p4 nor .spec");
  expect("target: bmv2, program: " GHOSTRANK_SOURCE_DIR "/collectives/examples/slot_max.spec",
         "is neither .p4 nor .json; name P4, or what p4c-bm2-ss makes of it");
  expect("entries: /etc/passwd", "switch.entries are those of a program; name it with");
  expect("loss: 0.1, entries: /etc/passwd, program: " GHOSTRANK_SOURCE_DIR
         "/collectives/examples/slot_max.spec",
         "those of switch.entries; use fabric.packets.loss");
  expect("loss: 0.000007", "switch.loss: 7e-06 is less than half of 1/65536");
}

TEST(JobErrors, SayHowManyLeavesThereMayBe) {
  const auto said = [](const std::string& nodes, const std::string& leaves) {
    return load_error(kHead + "cluster: {nodes: " + nodes +
                      ", gpus_per_node: 1, nics_per_node: 1}\n"
                      "fabric: {kind: packets, colocated: wire, namespaces: 'gr{node}'}\n"
                      "switch: {target: compiled, address: 10.0.0.9, ports: 'p{node}', leaves: " +
                      leaves + "}\n");
  };
  const auto expect = [&](const std::string& nodes, const std::string& leaves,
                          const std::string& message) {
    EXPECT_NE(said(nodes, leaves).find(message), std::string::npos) << said(nodes, leaves);
  };
  EXPECT_EQ(said("64", "2"), "");
  EXPECT_EQ(said("64", "1"), "");  // not refused: groups may be smaller
  expect("65", "2",
         "job.yaml:6:73: switch.leaves: 65 nodes on 2 leaves: a switch sums for at most 32; name 3 "
         "leaves or more");
  expect("3", "4", "switch.leaves: 3 nodes on 4 leaves: some would have none; name fewer leaves");
}

TEST(JobErrors, SayThatNobodyWaitsSoLongForASwitch) {
  const auto said = [](const std::string& away) {
    return load_error(kHead +
                      "collectives: {allreduce: switchml}\nfabric: {kind: virtual}\n"
                      "switch: {fails_at_us: [5], fallback_after_us: 0, away_us: " +
                      away + "}\n");
  };
  EXPECT_EQ(said("59e6"), "");
  EXPECT_NE(said("61e6").find("job.yaml:6:59: switch.away_us: the switches stay away for longer"),
            std::string::npos)
      << said("61e6");
  EXPECT_NE(said("61e6").find("or raise run.stall_timeout_s"), std::string::npos) << said("61e6");
  EXPECT_EQ(said("61e6}\nrun: {stall_timeout_s: 62"), "");
}

TEST(JobErrors, WantAPortOfTheSwitchForEveryNic) {
  const std::string said =
      load_error(kHead +
                 "cluster: {nodes: 2, gpus_per_node: 2, nics_per_node: 2}\n"
                 "fabric: {kind: packets, colocated: wire, namespaces: 'gr{node}'}\n"
                 "switch: {target: compiled, address: 10.0.0.9, ports: 'p{node}'}\n");
  EXPECT_NE(said.find("switch.ports: nodes have 2 NICs"), std::string::npos) << said;
}

TEST(JobErrors, NameWhatIsNotAvailableYet) {
  const auto refused = [](const std::string& override_text, const std::string& message) {
    EXPECT_EQ(load_error(kHead, {override_text}), "-s '" + override_text + "': " + message);
  };
  refused("fabric.gid_index=3",
          "fabric.gid_index is not available yet: only RDMA verbs could set it, over which "
          "ghostrank has not been run; remove it");
  refused("fabric.wire_op=write",
          "fabric.wire_op is not available yet: libfabric chooses the operation of a message "
          "itself; remove it");
  refused(
      "tensors.overlap=measured",
      "tensors.overlap is 'measured'; write random, all, none, or the path of a file of measured "
      "overlaps (there is no such file)");
}

TEST(JobErrors, SayWhereQueuePairsMeanSomething) {
  const std::string leaves =
      "cluster: {nodes: 4, topology: {kind: leaf_spine, leaves: 2, spines: 2";
  const auto error = [](const std::string& cluster, const std::string& fabric) {
    return load_error(kHead + cluster + "\nfabric: {" + fabric + "}\n");
  };
  EXPECT_EQ(error(leaves + "}}", "kind: virtual, qps_per_connection: 4, split_data_on_qps: true"),
            "");
  EXPECT_EQ(error(leaves + "}}", "kind: virtual, qps_per_connection: 129"),
            "job.yaml:5:45: fabric.qps_per_connection is '129'; write an integer from 1 to 128");
  EXPECT_EQ(
      error("cluster: {nodes: 4}", "kind: virtual, qps_per_connection: 4"),
      "job.yaml:5:45: fabric.qps_per_connection means nothing where no links between switches "
      "are modelled; set cluster.topology.kind (leaf_spine, for one), or leave it out");
  EXPECT_EQ(error(leaves + ", routing: flowlet}}", "kind: virtual, qps_per_connection: 4"),
            "job.yaml:5:45: fabric.qps_per_connection: flowlet chooses for the flowlets of a whole "
            "connection, those of its queue pairs are not modelled; use one queue pair, or "
            "cluster.topology.routing: ecmp");
  EXPECT_EQ(test::load_text(kHead + leaves + "}}\nfabric: {qps_per_connection: 4}\n")
                .spec.fabric.queue_pairs.count,
            4u);
}

TEST(JobErrors, SayWhichPacketsFitAndWhoMarksThem) {
  const auto error = [](const std::string& fabric) {
    return load_error(kHead + "cluster: {nodes: 4}\nfabric: {" + fabric + "}\n");
  };
  const auto payload = [](const std::string& fabric) {
    return test::load_text(kHead + "fabric: {kind: virtual, framing: rocev2" + fabric + "}\n")
        .spec.fabric.framing.packet_payload;
  };
  EXPECT_EQ(payload(""), 4096u);
  EXPECT_EQ(payload(", packets: {mtu: 1500}"), 1024u);
  EXPECT_EQ(payload(", path_mtu: 2048"), 2048u);
  EXPECT_EQ(payload(", path_mtu: 256, packets: {mtu: 1500}"), 256u);
  EXPECT_EQ(error("kind: virtual, framing: rocev2, path_mtu: 2048, packets: {mtu: 1500}"),
            "job.yaml:5:52: fabric.path_mtu: a packet with 2048 bytes of a message has 2108 bytes, "
            "and fabric.packets.mtu is 1500; take a smaller path MTU or a larger mtu");
  EXPECT_EQ(error("kind: packets, dscp: 26"), "");
  EXPECT_EQ(error("kind: packets, dscp: 64"),
            "job.yaml:5:31: fabric.dscp is '64'; write an integer from 0 to 63");
  EXPECT_EQ(error("kind: ofi, dscp: 26"),
            "job.yaml:5:27: fabric.dscp: libfabric opens the sockets of fabric ofi, and its "
            "providers for TCP have no setting for it; use fabric.kind: packets, or let the kernel "
            "mark the packets (nftables: ip dscp set)");
  EXPECT_EQ(error("kind: virtual, dscp: 26"), "");  // with a note: played on several fabrics
}

TEST(JobErrors, SayHowLongARunMayBe) {
  const auto run = [](const std::string& keys) {
    return load_error(kHead + "run: {" + keys + "}\n");
  };
  for (const char* const fine : {"90s", "1.5m", "24h", "7d", "26 d", "~"})
    EXPECT_EQ(run(std::string("duration: ") + fine), "");
  for (const char* const wrong : {"24", "0s", "1w", "27d", "-1h", "soon"})
    EXPECT_EQ(run(std::string("duration: ") + wrong),
              "job.yaml:4:17: run.duration is '" + std::string(wrong) +
                  "'; write a time above 0 and up to 26d, such as 90s, 30m, 24h or 7d");
  EXPECT_EQ(run("until: {ci95_percent: 1, min_iterations: 30, max_seconds: 600}"), "");
  EXPECT_EQ(run("duration: 1h, until: {ci95_percent: 1}"),
            "job.yaml:4:17: run.duration and run.until both say when the run ends; leave one out, "
            "or bound run.until by its max_seconds");
  EXPECT_EQ(run("min_seconds: 5, duration: 1h"),
            "job.yaml:4:20: run.min_seconds and run.duration both say how long the run lasts; "
            "leave one out");
  EXPECT_EQ(run("min_seconds: 5, until: {ci95_percent: 1}"),
            "job.yaml:4:20: run.min_seconds and run.until both say how long the run lasts; leave "
            "one out");
  EXPECT_NE(run("until: {max_seconds: 3}").find("run.until.ci95_percent"), std::string::npos);
  EXPECT_NE(run("until: {ci95_percent: 1, min_iterations: 1}").find("from 2 to 100000"),
            std::string::npos);
}

TEST(JobErrors, WantARateAsACap) {
  const auto cap = [](const std::string& rate) {
    return load_error(kHead + "fabric: {kind: ofi}\nsafety: {max_rate_per_nic: " + rate + "}\n");
  };
  EXPECT_EQ(cap("none"), "");
  EXPECT_EQ(cap("10Gbps"), "");
  for (const char* const wrong : {"0", "10", "unlimited", "10Kbps"})
    EXPECT_EQ(cap(wrong), "job.yaml:5:28: safety.max_rate_per_nic is '" + std::string(wrong) +
                              "'; write a rate of 1Mbps or more, such as 10Gbps, or none");
}

TEST(JobErrors, SayWhatSlicesCannotPlay) {
  const auto refused = [](const std::string& more, const std::string& why) {
    const std::string said =
        load_error(kHead + "cluster: {nodes: 4, gpus_per_node: 2, nics_per_node: 2}\n" + more);
    EXPECT_NE(said.find(why), std::string::npos) << said;
  };
  const std::string slice = "scale: {mode: slice, nodes: 0-1}\n";
  refused("scale: {mode: slice}\n", "scale.mode: slice plays the nodes of scale.nodes");
  refused("scale: {nodes: 0-1}\n", "scale.nodes");
  refused("scale: {mode: slice, nodes: 0-4}\n", "there is no node 4: cluster.nodes is 4");
  refused("scale: {mode: slice, nodes: 0-3}\n", "scale.nodes names every node of GPUs");
  refused("scale: {mode: slice, nodes: one}\n", "scale.nodes is 'one'; write numbers of nodes");
  refused(slice + "run: {verify: true}\n", "run.verify: sums need the data of ranks");
  refused(slice + "run: {min_seconds: 3}\n", "run.min_seconds: what comes to a slice");
  refused(slice + "run: {duration: 1h}\n", "run.duration: what comes to a slice");
  refused(slice + "run: {until: {ci95_percent: 1}}\n", "run.until.ci95_percent: what comes");
  refused(slice + "events: [{at_s: 1, mark: x}]\n", "events: a slice plays against");
  refused(slice + "fabric: {kind: virtual, network: flow}\n", "fabric.network: flow shares");
  refused(slice + "fabric: {kind: packets, colocated: wire, namespaces: 'gr{node}'}\n",
          "fabric.kind: packets plays all nodes");
  refused("scale: {mode: slice, nodes: 0-1}\nfabric: {kind: ofi}\nplacement: ['0 0', '2 1']\n",
          "node 2 is not in scale.nodes");
  refused("scale: {mode: slice, nodes: 0-1}\nfabric: {kind: ofi}\nplacement: ['0 0']\n",
          "gives node 1 no host; every node of scale.nodes needs one");
}

TEST(JobErrors, SayWhatNetworksNeed) {
  const auto text = [](const std::string& topology) {
    return load_error(kHead + "cluster: {nodes: 6, nics_per_node: 2, topology: {" + topology +
                      "}}\n");
  };
  EXPECT_EQ(text("kind: leaf_spine, leaves: 3, spines: 4, oversubscription: 2, routing: spray"),
            "");
  EXPECT_EQ(text("kind: rail_optimised, leaves: 4, uplink_rate: 800Gbps"), "");
  EXPECT_EQ(text("leaves: 3"),
            "job.yaml:4:58: cluster.topology.leaves means nothing where cluster.topology.kind is "
            "nonblocking; leave it out, or use cluster.topology.kind: leaf_spine or "
            "rail_optimised or fat_tree");
  EXPECT_EQ(text("kind: leaf_spine, leaves: 7"),
            "job.yaml:4:76: cluster.topology.leaves: 7 are more than 6 nodes can be connected to; "
            "take fewer");
  EXPECT_EQ(
      text("kind: rail_optimised, leaves: 3"),
      "job.yaml:4:80: cluster.topology.leaves: 3 cannot be shared by the rails of nodes with 2 "
      "NICs; take a multiple of 2");
  EXPECT_EQ(text("kind: leaf_spine, routing: ecpm"),
            "job.yaml:4:77: cluster.topology.routing is 'ecpm'; did you mean ecmp?");
  EXPECT_EQ(text("kind: leaf_spine, routing: adaptive"),
            "job.yaml:4:77: cluster.topology.routing is 'adaptive'; allowed: ecmp, static, spray, "
            "flowlet");
  EXPECT_EQ(
      text("kind: leaf_spine, uplink_rate: fast"),
      "job.yaml:4:81: cluster.topology.uplink_rate: 'fast' is neither auto nor a rate such as "
      "400Gbps");
  EXPECT_EQ(text("kind: leaf_spine, uplink_rate: 1Gbps, oversubscription: 2"),
            "job.yaml:4:81: cluster.topology.uplink_rate and oversubscription both say how fast "
            "up-links are; leave one of them out");
  EXPECT_EQ(text("kind: leaf_spine, oversubscription: 2}, nic: {rate: unlimited"),
            "job.yaml:4:86: cluster.topology.oversubscription: the NICs have no rate that could be "
            "divided; set cluster.nic.rate, or cluster.topology.uplink_rate");
  EXPECT_EQ(load_error(kHead + "cluster: {nodes: 1000000, topology: {kind: leaf_spine}}\n"),
            "job.yaml:4:44: cluster.topology: 16000000 links between switches; at most 4194304 "
            "are supported, set fewer leaves or spines");
  EXPECT_EQ(text("kind: fat_treee"),
            "job.yaml:4:56: cluster.topology.kind is 'fat_treee'; did you mean fat_tree?");
  EXPECT_EQ(
      text("kind: hypercube"),
      "job.yaml:4:56: cluster.topology.kind is 'hypercube'; allowed: nonblocking, single_switch, "
      "leaf_spine, rail_optimised, rail_only, fat_tree, torus, dragonfly, or the path of a .csv, "
      ".json or .yaml file of links");
  EXPECT_EQ(text("kind: torus, dimensions: [3, 2]"), "");
  EXPECT_EQ(text("kind: torus"),
            "job.yaml:4:56: cluster.topology.dimensions: a torus needs 1 to 6 numbers of routers, "
            "as in dimensions: [4, 4, 2]");
  EXPECT_EQ(text("kind: torus, dimensions: [3, 0]"),
            "job.yaml:4:79: cluster.topology.dimensions: '0' is no number of routers from 1 to "
            "1024");
  EXPECT_EQ(text("kind: torus, dimensions: [1000, 1000]"),
            "job.yaml:4:56: cluster.topology: 1000000 routers; at most 16384 are supported");
  EXPECT_EQ(text("kind: dragonfly"), "");
  EXPECT_EQ(text("kind: dragonfly, groups: 6, routers: 2, global_links: 2"),
            "job.yaml:4:104: cluster.topology.global_links: the 4 ports of a group do not reach "
            "the other 5 groups; set more of them, or more routers");
  EXPECT_EQ(text("kind: dragonfly, link_rate: fast"),
            "job.yaml:4:78: cluster.topology.link_rate: 'fast' is neither auto nor a rate such as "
            "400Gbps");
  EXPECT_EQ(text("kind: nowhere.csv"),
            "job.yaml:4:56: there is no file of links 'nowhere.csv'; check the path");
  EXPECT_EQ(
      text("kind: fat_tree, pods: 2, leaves: 6, spines: 2, cores: 4, failed: [leaf1.0-spine1.0]"),
      "");
  EXPECT_EQ(text("kind: fat_tree, pods: 2, leaves: 3"),
            "job.yaml:4:83: cluster.topology.leaves: 3 cannot be divided among 2 pods; take a "
            "multiple");
  EXPECT_EQ(text("kind: leaf_spine, places: 5"),
            "job.yaml:4:76: cluster.topology.places: the job has 6 nodes; make room for them");
  EXPECT_EQ(text("kind: leaf_spine, placement: nowhere.txt"),
            "job.yaml:4:79: cluster.topology.placement is 'nowhere.txt'; write packed, spread, "
            "random, or the path of a file with lines of NODES PLACES (there is no such file)");
  EXPECT_EQ(text("kind: leaf_spine, leaves: 2, spines: 1, failed: [leaf2-spine0]"),
            "job.yaml:4:98: cluster.topology.failed: there is no link 'leaf2-spine0'; one is "
            "called leaf0-spine0");
  EXPECT_EQ(text("kind: leaf_spine, leaves: 2, spines: 1, failed: [leaf1-spine0]"),
            "job.yaml:4:98: cluster.topology: no path leads from leaf0 to leaf1, and nodes are "
            "connected to both; add links, or let fewer fail");
  EXPECT_EQ(text("kind: leaf_spine, degraded: {leaf0-spine0: slow}"),
            "job.yaml:4:93: cluster.topology.degraded: 'slow' is no rate such as 100Gbps; a link "
            "without any has failed");
  EXPECT_EQ(load_error(kHead + "servers: {placement: near}\n"),
            "job.yaml:4:22: servers.placement is 'near'; allowed: dedicated, colocated, mixed");
  EXPECT_EQ(
      load_error(kHead + "servers: {count: 2, placement: colocated}\n"),
      "job.yaml:4:18: servers.count is 2, but the cluster has 1 nodes beside whose GPUs servers "
      "can be; use at most as many, or servers.placement: dedicated");
}

TEST(JobErrors, RefuseWhatMeansNothingToTheLibrary) {
  const auto text = [](const std::string& collectives) {
    return load_error(kHead + "collectives: {" + collectives + "}\n");
  };
  EXPECT_EQ(
      text("protocol: LL"),
      "job.yaml:4:25: collectives.protocol means nothing to library generic; leave it out, or "
      "use collectives.library: nccl-2.28 or nccl-2.30");
  EXPECT_EQ(text("library: nccl-2.28, slice: 1MiB"),
            "job.yaml:4:42: collectives.slice means nothing to library nccl-2.28; leave it out, or "
            "use collectives.library: generic");
  EXPECT_NE(text("library: gloo, channels: 4").find("collectives.channels"), std::string::npos);
  EXPECT_EQ(
      text("library: nccl-2.30, protocol: LL128, max_channels: 4, channels: 8, node_template: "
           "hgx-h100-400g"),
      "");
  EXPECT_EQ(text("library: nccl-2.28, node_template: hgx-h100"),
            "job.yaml:4:50: there is no node template 'hgx-h100'; known are one-gpu, one-gpu-400g, "
            "hgx-h100-400g, hgx-h100-200g, hgx-h100-4nic, hgx-h100-1nic, dgx-a100");
}

TEST(JobErrors, DoNotStrikeReservedKeysThatChangeNothing) {
  EXPECT_EQ(load_error(kHead + "parallel: {framework: ddp, tp: 1, pp: 1, cp: 1, ep: 1}\n"
                               "tensors: {density: 1, block: 256, overlap: random}\n"
                               "hosts: []\nevents: []\nbackground: []\n"
                               "safety: {max_rate_per_nic: none}\n"
                               "cluster: {topology: {kind: nonblocking, oversubscription: 1}}\n"
                               "fabric: {qps_per_connection: 1}\n"),
            "");
}

TEST(JobErrors, NameAMissingModelOrDevice) {
  EXPECT_EQ(load_error("schema: ghostrank/job/1\n"),
            "job.yaml:1:1: job has no model; add it: what is trained: a name in profiles/models, a "
            "path (.yaml, .csv) or a mapping");
  EXPECT_EQ(load_error("model: gpt2\n"),
            "job.yaml:1:8: the layers of 'gpt2' have no measured times; add a device, as in "
            "device: h100-sxm");
  EXPECT_EQ(load_error("model: gtp2\ndevice: h100-sxm\n"),
            "job.yaml:1:8: there is no model called 'gtp2'; did you mean gpt2?");
  EXPECT_EQ(
      load_error("model: gpt2\ndevice: tpu\n"),
      "job.yaml:2:9: there is no device called 'tpu'; known: a100-sxm-40gb, a100-sxm-80gb, "
      "b200-sxm, h100-pcie, h100-sxm, h200-measured, h200-sxm, host-cpu, rtx2080ti, v100-sxm2");
  EXPECT_EQ(load_error("model: ./none.yaml\n"),
            "job.yaml:1:8: there is no model file './none.yaml'; check the path");
  EXPECT_EQ(load_error("model: gpt2\ndevice: {peak_tflops: {bf16: 1}}\n"),
            "job.yaml:2:9: the device 'device' has no peak_tflops for fp32; choose another "
            "precision.parameters");
}

TEST(JobErrors, CatchWrongSchemasAndShapes) {
  EXPECT_EQ(load_error("schema: ghostrank/job/2\n"),
            "job.yaml:1:9: schema is 'ghostrank/job/2'; allowed: ghostrank/job/1");
  EXPECT_EQ(load_error("[]\n"), "job.yaml:1:1: a job is a mapping of keys; found a list");
  EXPECT_EQ(load_error(""), "job.yaml:1:1: a job is a mapping of keys; found nothing");
  EXPECT_EQ(load_error("{schema: ghostrank/result/1}"),
            "job.yaml:1:1: a result without a config cannot be replayed; give a job file");
  EXPECT_EQ(load_error(kHead + "cluster: {nodes: 1000000, gpus_per_node: 1000}\n"),
            "job.yaml:4:18: the cluster has 1000000000 GPUs; at most 16777216 are supported, lower "
            "nodes");
}

TEST(JobErrors, AreUsageErrors) {
  try {
    test::load_text("{}");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
  }
}

TEST(JobErrors, SayWhatAFlagMayBe) {
  EXPECT_EQ(load_error(kHead, {"run.iterations"}),
            "-s 'run.iterations': no value; write -s path=value, as in -s run.iterations=10");
  EXPECT_EQ(load_error(kHead, {"run.iteration=3"}),
            "-s 'run.iteration=3': unknown key 'run.iteration'; did you mean run.iterations?");
  EXPECT_EQ(load_error(kHead, {"run.seed.x=3"}),
            "-s 'run.seed.x=3': unknown key 'run.seed.x'; did you mean run.seed?");
  EXPECT_EQ(load_error(kHead, {"device.efficincy=0.5"}),
            "-s 'device.efficincy=0.5': unknown key 'efficincy'; did you mean efficiency?");
}

TEST(JobErrors, RefuseWhatMeansNothingToTheFramework) {
  EXPECT_EQ(load_error(kHead + "parallel: {tp: 8}\n"),
            "job.yaml:4:16: parallel.tp means nothing to framework ddp; leave it out, or use "
            "parallel.framework: megatron or torchtitan");
  EXPECT_EQ(load_error(kHead + "parallel: {framework: megatron, bucket_cap_mb: 10}\n"),
            "job.yaml:4:48: parallel.bucket_cap_mb means nothing to framework megatron; leave it "
            "out, or use parallel.framework: ddp or torchrec");
  EXPECT_EQ(load_error(kHead + "parallel: {framework: ddp, tp: 1, sequence_parallel: false}\n"),
            "");
}

TEST(JobErrors, NameTheFrameworkThatNeedsServers) {
  EXPECT_EQ(load_error(kHead + "parallel: {framework: phub}\n"),
            "job.yaml:4:23: framework phub needs servers, and servers.count is 0; set it, with "
            "servers.placement: dedicated, colocated or mixed");
  EXPECT_EQ(load_error(kHead + "servers: {count: 1}\nparallel: {framework: phub}\n"), "");
  const std::string racks = "servers: {count: 1}\ncollectives: {allreduce: phub_racks}\n";
  EXPECT_EQ(load_error(kHead + racks + "parallel: {framework: phub}\n"), "");
  EXPECT_NE(load_error(kHead + racks + "parallel: {framework: byteps}\n")
                .find("sums gradients by its own scheme"),
            std::string::npos);
}

TEST(JobErrors, SayWhatServersCannotDo) {
  const auto error = [](const std::string& servers, const std::string& parallel,
                        const std::string& more = "") {
    const std::string why = load_error(kHead + "servers: {" + servers +
                                       "}\nparallel: {framework: " + parallel + "}\n" + more);
    return why.substr(std::min(why.size(), why.find(' ') + 1));
  };
  const std::string racks = "collectives: {allreduce: phub_racks}\n";
  EXPECT_EQ(error("count: 1", "phub, rack_nics: 1"),
            "parallel.rack_nics is 1, but servers are in no racks; add  collectives: {allreduce: "
            "phub_racks}");
  EXPECT_EQ(error("count: 1", "phub, rack_nics: 1", racks),
            "parallel.rack_nics is 1, and servers have 1 NIC, of which one at least must be for "
            "the nodes; raise servers.nics");
  EXPECT_EQ(error("count: 2, fails: 2", "byteps"),
            "servers.fails is 2, and the job has servers 0 to 1");
  EXPECT_EQ(error("count: 2", "byteps, asynchronous: true", "run: {verify: true}\n"),
            "run.verify: with parallel.asynchronous a result depends on who has pushed before; use "
            "parallel.asynchronous=false");
  EXPECT_EQ(error("count: 2", "byteps, asynchronous: true, server_timeout_us: 9, elastic: true"),
            "parallel.asynchronous: what a dead server stored is lost, so no other one can take "
            "its keys; use parallel.elastic=false");
}

TEST(JobErrors, SayThatASchemeLacksTheOperation) {
  const std::string why = load_error(kHead + "collectives: {reduce_scatter: atp}\n");
  EXPECT_NE(why.find("is 'atp', which has no reduce_scatter; allowed: auto, ring"),
            std::string::npos)
      << why;
}

TEST(JobErrors, SayWhatServersCannotCompress) {
  const auto error = [](const std::string& compression, const std::string& more = "") {
    const std::string why = load_error(kHead + "servers: {count: 2}\ncompression: {" + compression +
                                       "}\nparallel: {framework: byteps" + more + "}\n");
    return why.substr(std::min(why.size(), why.find(' ') + 1));
  };
  EXPECT_EQ(error("method: onebit, memory: nesterov, min_bytes: 1024"), "");
  EXPECT_EQ(error("method: dithering, partition: natural, quantum: 31"), "");
  EXPECT_NE(error("method: dithering, partition: natural, quantum: 32").find("use at most 31"),
            std::string::npos);
  EXPECT_NE(error("method: dithering", "}\ntensors: {drift: {scale: 0.9}").find("by one law"),
            std::string::npos);
  EXPECT_NE(error("method: powersgd").find("powersgd needs several rounds"), std::string::npos);
  EXPECT_NE(error("method: signsgd").find("signsgd sends votes"), std::string::npos);
  EXPECT_NE(error("method: topk, memory: dgc").find("dgc is not BytePS's"), std::string::npos);
  EXPECT_NE(error("method: topk, merge: tensor").find("compression.merge: framework byteps"),
            std::string::npos);
  EXPECT_NE(error("method: topk", ", asynchronous: true").find("parallel.asynchronous: servers"),
            std::string::npos);
}

TEST(JobErrors, NameTheFilesThatCouldHaveBeenMeant) {
  EXPECT_EQ(
      test::error_of([] { load_job("/no/such/job.yaml", {}); }),
      "/no/such/job.yaml: there is no such file; give the path of a job file or one of: "
      "bert-large-ddp, bert-large-dear, bert-large-mgwfbp, captured-gpt-ddp, "
      "captured-gpt2-1024, captured-resnet-ddp, "
      "deepseek-v3-671b, dlrm-dcnv2-torchrec, dlrm-omnireduce, gpt2-xl-ddp, gpt2-xl-hgx-rails, "
      "gpt3-175b-megatron, gpt3-175b-megatron-cut, learning, llama3-405b, llama3-8b-checkpoint, "
      "quickstart-resnet50, resnet50-ab, resnet50-adaptive, resnet50-grace, resnet50-kfac, "
      "two-jobs, verify-small, vgg16-byteps");
  EXPECT_EQ(test::error_of([] { load_job("/", {}); }), "/: is a folder; check the path");
}

}  // namespace
}  // namespace ghostrank
