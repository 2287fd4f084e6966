// The loader's notes on keys in virtual time, compared with runs: a key that the loader notes as
// without effect changes nothing, and every other key changes something. Runs in virtual time
// repeat to the picosecond, so chance plays no part. Each run is played again from its result.
#include <algorithm>
#include <sstream>

#include <gtest/gtest.h>

#include "emulator/engine.h"
#include "profiles/load/job_schema.h"
#include "profiles/load/load.h"
#include "profiles/planners/plan.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

using Overrides = std::vector<std::string>;

// Three layers on four nodes; their gradients have to wait for the network.
constexpr const char* kJob = R"(
model:
  kind: layers
  name: three-layers
  dtype: float32
  layers:
    - {name: first, parameters: [40000], forward_us: 10, backward_us: 10}
    - {name: inner, parameters: [100], forward_us: 10, backward_us: 10}
    - {name: second, parameters: [30000], forward_us: 10, backward_us: 10}
  optimizer_us: 5
cluster: {nodes: 4, gpus_per_node: 2, nics_per_node: 2}
parallel: {bucket_cap_mb: 0.1, first_bucket_mb: 0.1}
fabric: {kind: virtual}
run: {iterations: 3}
)";

struct Probe {
  std::string key, value;
  Overrides beside = {};
};

const Overrides kScheme{"collectives.allreduce=switchml"};
const Overrides kLossy{"collectives.allreduce=switchml", "fabric.packets.loss=0.1"};
const Overrides kFailing{"collectives.allreduce=switchml", "switch.fails_at_us=[50]",
                         "switch.timeout_us=10"};
const Overrides kOmniReduce{"collectives.allreduce=omnireduce", "servers.count=2"};
const Overrides kOneSlot{"collectives.allreduce=omnireduce", "servers.count=2",
                         "omnireduce.slots=1"};
const Overrides kOmniLossy{"collectives.allreduce=omnireduce", "servers.count=2",
                           "omnireduce.carriage=packets", "fabric.packets.loss=0.1"};
const Overrides kAtServers{"collectives.allreduce=parameter_server", "servers.count=2"};
const Overrides kSharp{"collectives.allreduce=sharp"};
const Overrides kByTensor{"compression.method=topk", "compression.merge=tensor"};
const Overrides kAsOne{"compression.method=topk", "compression.merge=model"};
const Overrides kLeaves{"cluster.topology.kind=leaf_spine", "cluster.topology.leaves=2"};
const Overrides kNarrow{"cluster.topology.kind=leaf_spine", "cluster.topology.oversubscription=64"};
// Packets on links so narrow that queues fill.
Overrides packets(const Overrides& more = {}) {
  Overrides out{"cluster.topology.kind=leaf_spine", "cluster.topology.oversubscription=64",
                "cluster.nic.latency_us=0.2",       "fabric.network=packet",
                "fabric.packets.mtu=1500",          "fabric.queues.buffer=20KiB"};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}
const Overrides kPackets = packets();
const Overrides kMarks = packets({"fabric.queues.mark_to=10KiB"});
const Overrides kLosing = packets({"fabric.queues.pause=false", "fabric.queues.buffer=4KiB"});
const Overrides kSpines{"cluster.topology.kind=leaf_spine", "cluster.topology.oversubscription=64",
                        "cluster.topology.spines=3"};
const Overrides kFlowlets{"cluster.topology.kind=leaf_spine",
                          "cluster.topology.oversubscription=64", "cluster.topology.spines=3",
                          "cluster.topology.routing=flowlet"};
const Overrides kPairs{"cluster.topology.kind=leaf_spine", "cluster.topology.oversubscription=64",
                       "cluster.topology.spines=3", "fabric.qps_per_connection=4"};
const Overrides kSprayed{"cluster.topology.kind=leaf_spine", "cluster.topology.oversubscription=64",
                         "cluster.topology.spines=3", "cluster.topology.routing=spray"};
const Overrides kRoomy{"cluster.topology.kind=leaf_spine", "cluster.topology.oversubscription=64",
                       "cluster.topology.places=16", "cluster.topology.leaves=8"};
const Overrides kPods{"cluster.topology.kind=fat_tree", "cluster.topology.leaves=4",
                      "cluster.topology.spines=1", "cluster.topology.pods=2"};
const Overrides kTree{"cluster.topology.kind=fat_tree", "cluster.topology.leaves=4",
                      "cluster.topology.spines=1", "cluster.topology.pod_oversubscription=64"};
const Overrides kNarrowPods{"cluster.topology.kind=fat_tree", "cluster.topology.leaves=4",
                            "cluster.topology.spines=1", "cluster.topology.pods=2",
                            "cluster.topology.pod_oversubscription=64"};
const Overrides kTorus{"cluster.topology.kind=torus", "cluster.topology.dimensions=[8]"};
const Overrides kSlowTorus{"cluster.topology.kind=torus", "cluster.topology.dimensions=[8]",
                           "cluster.topology.link_rate=1Gbps"};
const Overrides kGroups{"cluster.topology.kind=dragonfly", "cluster.topology.groups=2",
                        "cluster.topology.routers=1", "cluster.topology.global_rate=1Gbps"};
const Overrides kRouters{"cluster.topology.kind=dragonfly", "cluster.topology.routers=1",
                         "cluster.topology.link_rate=1Gbps"};
const Overrides kLearning{"training.task=logistic", "run.verify=true"};
const Overrides kNccl{"collectives.library=nccl-2.28"};

const std::vector<Probe> kProbes{
    {"cluster.nodes", "2"},
    {"cluster.gpus_per_node", "4"},
    {"cluster.nics_per_node", "1"},
    {"cluster.nic.rate", "10Gbps"},
    {"cluster.nic.latency_us", "9"},
    {"cluster.intra_node.rate", "10Gbps"},
    {"cluster.intra_node.latency_us", "9"},
    {"cluster.intra_node.links", "dgx-1v"},
    {"cluster.intra_node.gpus", "[0, 3]", {"cluster.intra_node.links=dgx-1v"}},
    {"cluster.topology.kind", "leaf_spine", {"cluster.topology.oversubscription=8"}},
    {"cluster.topology.leaves", "4", kNarrow},
    {"cluster.topology.spines", "3", kNarrow},
    {"cluster.topology.oversubscription", "8", kLeaves},
    {"cluster.topology.uplink_rate", "1Gbps", kLeaves},
    {"cluster.topology.link_latency_us", "3", kLeaves},
    {"cluster.topology.link_latency_us", "3", {"cluster.topology.kind=nonblocking"}},
    {"cluster.topology.routing", "spray", kSpines},
    {"cluster.topology.flowlet_gap_us", "0", kFlowlets},
    {"fabric.network", "flow", kNarrow},
    {"fabric.network", "packet", kNarrow},
    {"fabric.queues.buffer", "30KiB", kPackets},
    {"fabric.queues.pause", "false", kPackets},
    {"fabric.queues.scheduling", "fair", kPackets},
    {"fabric.queues.congestion_control", "none", kPackets},
    {"fabric.queues.window", "5KiB", kPackets},
    {"fabric.queues.mark_from", "9000", kMarks},
    {"fabric.queues.mark_to", "1000", kPackets},
    {"fabric.queues.mark_share", "1", kMarks},
    {"fabric.queues.retransmit_us", "50", kLosing},
    {"cluster.topology.places", "16", kNarrow},
    {"cluster.topology.placement", "spread", kRoomy},
    {"cluster.topology.pods", "2", kTree},
    {"cluster.topology.cores", "4", kNarrowPods},
    {"cluster.topology.pod_oversubscription", "64", kPods},
    {"cluster.topology.dimensions", "[2, 4]", kSlowTorus},
    {"cluster.topology.link_rate", "1Gbps", kTorus},
    {"cluster.topology.groups", "2", kRouters},
    {"cluster.topology.routers", "2", kRouters},
    {"cluster.topology.global_links", "16", kGroups},
    {"cluster.topology.global_rate", "1Mbps", kGroups},
    {"cluster.topology.failed", "[leaf0-spine0, leaf0-spine1]", kSpines},
    {"cluster.topology.degraded", "{leaf0-spine0: 1Mbps, leaf0-spine1: 1Mbps, leaf0-spine2: 1Mbps}",
     kSpines},
    {"servers.count", "2"},
    {"servers.count", "1", kAtServers},
    {"servers.placement", "mixed"},
    {"servers.optimizer_GBps", "0.1", kAtServers},
    {"servers.nics", "2", {"servers.count=0"}},
    {"servers.nic.rate", "1Gbps", {"servers.count=0"}},
    {"servers.nic.latency_us", "9", {"servers.count=0"}},
    {"switch.address", "10.0.0.1", {"switch.target=compiled"}},
    {"switch.mac", "02:00:00:00:00:09", {"switch.target=compiled"}},
    {"switch.ports", "p{node}", {"switch.target=dpdk"}},
    {"switch.namespace", "sw", {"switch.target=dpdk"}},
    {"switch.leaves", "2", {"switch.target=compiled"}},
    {"switch.loss", "0.1", {"switch.target=compiled"}},
    {"switch.program", "own.spec", {"switch.target=dpdk"}},
    {"switch.entries", "own.entries", {"switch.target=dpdk"}},
    {"switch.socket", "sw.sock", {"switch.target=external"}},
    {"switch.worker_port", "5000", {"switch.target=external"}},
    {"switch.slots", "1", kScheme},
    {"switch.slots", "1", {"collectives.allreduce=ring"}},
    {"switch.slots", "1", kAtServers},
    {"switch.packet_elements", "32", kScheme},
    {"switch.packet_elements", "32", kSharp},
    {"switch.timeout_us", "500", kLossy},
    {"switch.timeout_us", "500", kSharp},
    {"switch.trees", "0", kSharp},
    {"switch.trees", "0", kScheme},
    {"switch.packet_rate_mpps", "0.01", kScheme},
    {"switch.fails_at_us", "[50]", {"collectives.allreduce=switchml", "switch.away_us=100"}},
    {"switch.away_us", "500", kFailing},
    {"switch.fallback_after_us",
     "100",
     {"collectives.allreduce=switchml", "switch.fails_at_us=[50]", "switch.timeout_us=10",
      "switch.away_us=2000"}},
    {"omnireduce.block", "64", kOmniReduce},
    {"omnireduce.block", "64", kScheme},
    {"omnireduce.carriage", "packets", kOmniReduce},
    {"omnireduce.columns", "1", kOmniReduce},
    {"omnireduce.slots", "1", kOmniReduce},
    {"omnireduce.timeout_us", "500", kOmniLossy},
    {"collectives.library", "nccl-2.28"},
    {"collectives.allreduce", "recursive_doubling"},
    {"collectives.channels", "1"},
    {"collectives.slice", "1KiB"},
    {"collectives.credits", "1", {"collectives.slice=1KiB"}},
    {"collectives.protocol", "Simple", kNccl},
    {"collectives.max_channels", "1", kNccl},
    {"collectives.environment", "{NCCL_PROTO: Simple}", kNccl},
    {"collectives.groups", "{dp: {allreduce: recursive_doubling}}"},
    {"tensors.density", "0.3"},
    {"tensors.density", "0.3", kOneSlot},
    {"tensors.density", "0.3", kScheme},
    {"tensors.density", "0.3", {"compression.method=topk"}},
    {"tensors.last_density", "0.1"},
    {"tensors.last_density", "0.1", kOneSlot},
    {"tensors.block", "64", {"tensors.density=0.3"}},
    {"tensors.overlap", "all", {"tensors.density=0.3"}},
    {"parallel.bucket_cap_mb", "0.0001"},
    {"parallel.bucket_cap_mb", "0.0001", kByTensor},
    {"parallel.bucket_cap_mb", "0.0001", kAsOne},
    {"parallel.first_bucket_mb", "0.2", kByTensor},
    {"parallel.launch", "after_backward", kByTensor},
    {"parallel.launch", "after_backward", kAsOne},
    {"compression.method", "fp16"},
    {"compression.ratio", "0.5", {"compression.method=topk"}},
    {"compression.ratio", "0.5", {"compression.method=fp16"}},
    {"compression.ratio", "0.5", {"compression.method=topk", "compression.budget_ms=0.02"}},
    {"compression.budget_ms", "0.02", {"compression.method=topk"}},
    {"compression.least_ratio", "0.3", {"compression.method=topk", "compression.budget_ms=0.001"}},
    {"compression.most_ratio",
     "0.2",
     {"compression.method=randomk", "compression.budget_ms=1", "compression.least_ratio=0.05"}},
    {"compression.gather_us", "5", {"compression.method=topk"}},
    {"compression.gather_us", "5", {"compression.method=fp16"}},
    {"compression.gather_ns", "5", {"compression.method=topk"}},
    {"compression.gather_ns", "5", {"compression.method=fp16"}},
    {"compression.quantum", "200", {"compression.method=qsgd"}},
    {"compression.quantum", "200", {"compression.method=topk"}},
    {"compression.quantum", "4", {"compression.method=dithering"}},
    {"compression.partition", "natural", {"compression.method=dithering", "compression.quantum=5"}},
    {"compression.normalize", "l2", {"compression.method=dithering"}},
    {"compression.threshold", "0.001", {"compression.method=threshold"}},
    {"compression.rank", "2", {"compression.method=powersgd"}},
    {"compression.quantiles", "300", {"compression.method=sketch"}},
    {"compression.error_bound", "2e-5", {"compression.method=inceptionn"}},
    {"compression.memory", "residual", {"compression.method=topk"}},
    {"compression.memory", "nesterov", {"compression.method=topk"}},
    {"training.task", "logistic", {"run.verify=true"}},
    {"training.samples", "5", kLearning},
    {"training.rate", "0.2", kLearning},
    {"training.vote",
     "0.01",
     {"compression.method=signsgd", "training.task=logistic", "run.verify=true"}},
    {"compression.stages", "1", {"compression.method=sidco-e", "compression.ratio=0.001"}},
    {"placement", "cyclic"},
    {"scale.dilation", "5"},
    {"fabric.provider", "tcp"},
    {"fabric.bind", "lo"},
    {"fabric.flows", "nic"},
    {"fabric.colocated", "model"},
    {"fabric.colocated", "wire"},
    {"fabric.frames", "off"},
    {"fabric.namespaces", "gr{node}", {"fabric.colocated=wire"}},
    {"fabric.inside_node", "messages", {"cluster.nodes=1"}},
    {"fabric.payload", "copied"},
    {"fabric.framing", "udp"},
    {"fabric.path_mtu", "256", {"fabric.framing=rocev2"}},
    {"fabric.path_mtu", "256", {"fabric.framing=udp"}},
    {"fabric.qps_per_connection", "4", kSpines},
    {"fabric.qps_per_connection", "4", {"cluster.topology.kind=nonblocking"}},
    {"fabric.qps_per_connection", "4", kSprayed},
    {"fabric.split_data_on_qps", "true", kPairs},
    {"fabric.dscp", "10"},
    {"fabric.packets.loss", "0.1", kScheme},
    {"fabric.packets.loss", "0.1", {"collectives.allreduce=ring"}},
    {"fabric.packets.loss", "0.1", kAtServers},
    {"fabric.packets.duplicates", "0.1", kScheme},
    {"fabric.packets.duplicates", "0.1", kSharp},
    {"fabric.packets.reordering", "0.1", kScheme},
    {"fabric.packets.reordering", "0.1", kAtServers},
    {"fabric.packets.mtu", "1500", {"fabric.framing=udp"}},
    {"fabric.packets.mtu", "1500", {"collectives.allreduce=ring"}},
    {"fabric.packets.mtu", "1500", kSharp},
    {"fabric.packets.mtu", "1500", kAtServers},
    {"fabric.packets.mtu", "1500", kOmniReduce},
    {"fabric.packets.loss", "0.1", kOmniReduce},
    {"fabric.packets.duplicates", "0.1", kOmniReduce},
    {"fabric.packets.reordering", "0.1", kOmniReduce},
    {"fabric.packets.reordering", "0.1", kOmniLossy},
    {"scale.nodes", "0", {"scale.mode=slice"}},
    {"run.iterations", "2"},
    {"run.warmup", "0"},
    {"run.min_seconds", "1"},
    {"run.duration", "0.002s"},
    {"run.until.ci95_percent", "2", {"run.jitter=0.3"}},
    {"run.until.min_iterations", "60", {"run.until.ci95_percent=50", "run.jitter=0.3"}},
    {"run.verify", "true"},
    {"run.seed", "9", {"run.jitter=0.3"}},
    {"run.jitter", "0.3"},
    {"run.compute_slowdown", "0.5"},
    {"events", "[{at_s: 0, rank: 1, slow: 9}]"},
    {"events", "[{at_s: 0, link: leaf0-spine0, down_s: 0.1}]", kNarrow},
    {"run.probe_ms", "0"},
    {"safety.max_rate_per_nic", "1Gbps"},
};

// The figures of a run in virtual time by which a key's effect is judged.
std::string ledger(const LoadedJob& job) {
  const Workload workload = plan_workload(job.spec);
  const auto control = Control::meet(World{});
  Observer nobody;
  const Result result = run_job(job, workload, *control, {}, nobody);
  std::ostringstream text;
  text.precision(17);
  text << result.dilation << ' ' << result.ranks << '\n';
  for (const IterationReport& i : result.iterations)
    text << i.seconds << ' ' << i.compute_seconds << ' ' << i.exposed_comm_seconds << '\n';
  for (const CollectiveReport& c : result.collectives)
    text << c.op << ' ' << c.algorithm << ' ' << c.bytes << ' ' << c.seconds_median << '\n';
  text << result.intra_node_messages_per_iteration << '\n';
  for (const PairTraffic& p : result.pairs)
    text << p.source_nic << ' ' << p.target_nic << ' ' << p.bytes << ' ' << p.messages << '\n';
  if (result.packets) text << result.packets->sent << ' ' << result.packets->received << '\n';
  if (result.network && !result.network->tiers.empty()) text << "links\n";
  if (result.training)
    for (const double loss : result.training->loss) text << loss << '\n';
  if (result.verify) text << result.verify->checked_elements << '\n';
  return text.str();
}

bool notes_idle(const LoadedJob& job, const std::string& key) {
  return std::any_of(job.spec.notes.begin(), job.spec.notes.end(), [&](const std::string& note) {
    const bool listed = note.ends_with(": " + key) || note.ends_with(", " + key) ||
                        note.find(" " + key + ",") != std::string::npos;
    return note.starts_with("no effect") && listed;
  });
}

TEST(IdleKeysInVirtualTime, AreThoseThatChangeNothing) {
  for (const Probe& probe : kProbes) {
    SCOPED_TRACE(probe.key + "=" + probe.value + " beside " +
                 (probe.beside.empty() ? "nothing" : probe.beside.front()));
    Overrides with = probe.beside;
    with.push_back(probe.key + "=" + probe.value);
    const LoadedJob job = test::load_text(kJob, with);
    // Here `beside` cannot be loaded without the key itself.
    const bool alone = probe.key == "cluster.topology.kind" || probe.key == "scale.nodes";
    const std::string plain = ledger(test::load_text(kJob, alone ? Overrides{} : probe.beside));
    const std::string played = ledger(job);
    if (notes_idle(job, probe.key)) {
      EXPECT_EQ(played, plain);
    } else {
      EXPECT_NE(played, plain);
    }
    // The config of a result gives every key, and plays the same.
    const LoadedJob again = test::load_text(job.config_json);
    EXPECT_EQ(again.config_json, job.config_json);
    EXPECT_EQ(again.spec.notes, job.spec.notes);
    EXPECT_EQ(ledger(again), played);
  }
}

// Keys whose effect is not in these figures, or that need files of their own.
bool is_elsewhere(const Key& key) {
  for (const char* path : {"schema",
                           "model",
                           "program",
                           "trace",
                           "device",
                           "cluster.base",
                           "cluster.nic.rates",
                           "cluster.storage_nodes",
                           "run.stall_timeout_s",
                           "run.until.max_seconds",
                           "servers.cores",
                           "servers.add_GBps",
                           "servers.memory_GBps",
                           "servers.fails",
                           "servers.fails_at_us",
                           "variants",
                           "switch.target",
                           "switch.memory_slots",
                           "switch.trees_of",
                           "collectives.plugins",
                           "collectives.node_template",
                           "collectives.node_cpu",
                           "compression.communicator",
                           "compression.costs",
                           "compression.merge",
                           "compression.min_bytes",
                           "hosts",
                           "scale.mode",
                           "fabric.kind",
                           "run.shards",
                           "background",
                           "jobs"})
    if (key.path == path) return true;
  if (key.path.starts_with("collectives."))  // other calls than the job's
    for (int f = 0; f < kFuncs; ++f)
      if (key.path == algorithm_key(static_cast<Func>(f))) return true;
  return key.path.starts_with("parallel.") || key.path.starts_with("precision.") ||
         key.path.starts_with("tensors.") || !key.available;
}

TEST(IdleKeysInVirtualTime, AreLookedForAmongAllKeys) {
  for (const Key& key : job_keys()) {
    const auto is_of_key = [&](const Probe& probe) { return probe.key == key.path; };
    EXPECT_TRUE(is_elsewhere(key) || std::any_of(kProbes.begin(), kProbes.end(), is_of_key))
        << key.path;
  }
}

}  // namespace
}  // namespace ghostrank
