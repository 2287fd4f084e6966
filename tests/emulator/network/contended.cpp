#include "tests/emulator/network/contended.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "tests/emulator/network/leaf_spine.h"

namespace ghostrank::testing {
namespace {

constexpr Picoseconds kNicLatency = 2 * kPicosPerMicro;
constexpr Framing kFraming{1024, 82, 16};  // as fabric.framing: rocev2 with a path MTU of 1,024
constexpr int kMembers = 8;                // of a lone collective

TopologySpec with_slow_link(TopologySpec spec, const std::string& link, double bps) {
  spec.degraded.emplace_back(link, bps);
  return spec;
}

// Gives every rank a role of its own.
void give_roles(SmallJob& job) {
  if (job.workload.roles.size() > 1) return;
  job.workload.roles.assign(job.workload.role_of.rows().size(), job.workload.roles[0]);
  for (const WorldRank r : job.workload.role_of.keys())
    job.workload.role_of[r] = static_cast<std::uint16_t>(r.value());
}

struct Sent {
  int from, to;
  double bytes = 4e6;
  double after_us = 0;
};

// Adds transfers, each on a stream of its own at both ends.
void add(SmallJob& job, double scale, const std::vector<Sent>& transfers) {
  give_roles(job);
  for (const Sent& t : transfers)
    for (const bool sends : {true, false}) {
      Program& program = job.workload.roles[sends ? t.from : t.to].iterations[0];
      if (!program.streams.back().empty()) {
        program.streams.emplace_back();
        program.stream_names.push_back("more");
      }
      Op wait;
      wait.duration = static_cast<Picoseconds>(t.after_us * scale * kPicosPerMicro);
      if (sends && wait.duration > 0) program.streams.back().push_back(wait);
      Op op;
      op.kind = sends ? Op::Kind::send : Op::Kind::recv;
      op.count = static_cast<std::uint64_t>(t.bytes * scale / 4);
      op.peer = sends ? t.to - t.from : t.from - t.to;
      program.streams.back().push_back(op);
    }
}

// Adds a collective of a group with these members, in this order.
void add(SmallJob& job, double scale, Func func, double bytes, const std::vector<int>& members) {
  give_roles(job);
  Op op;
  op.kind = Op::Kind::collective;
  op.func = func;
  op.group = static_cast<std::uint16_t>(job.workload.group_names.size());
  op.count = static_cast<std::uint64_t>(bytes * scale / 4);
  job.workload.group_names.push_back("group" + std::to_string(op.group));
  Group& group = job.workload.groups.emplace_back();
  group.kind = op.group;
  for (const int m : members) {
    group.members.push_back(WorldRank(m));
    Program& program = job.workload.roles[m].iterations[0];
    if (!program.streams.back().empty()) {
      program.streams.emplace_back();
      program.stream_names.push_back("more");
    }
    program.streams.back().push_back(op);
  }
}

std::vector<Sent> incast(int senders, int to) {
  std::vector<Sent> out;
  for (int s = 0; s < senders; ++s)
    if (s != to) out.push_back({s, to});
  return out;
}

// A random permutation without fixed points.
std::vector<Sent> permutation(int ranks, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<int> to(ranks);
  std::iota(to.begin(), to.end(), 0);
  for (int i = ranks - 1; i > 0; --i) std::swap(to[i], to[random() % i]);  // one cycle
  std::vector<Sent> out;
  for (int r = 0; r < ranks; ++r) out.push_back({r, to[r]});
  return out;
}

std::vector<int> every(int first, int step, int count) {
  std::vector<int> out;
  for (int i = 0; i < count; ++i) out.push_back(first + i * step);
  return out;
}

std::function<void(SmallJob&, double)> sends(std::vector<Sent> transfers) {
  return [transfers = std::move(transfers)](SmallJob& job, double scale) {
    add(job, scale, transfers);
  };
}

}  // namespace

const std::vector<ContendedCase>& contended_cases() {
  static const std::vector<ContendedCase> kCases{
      {"incast 7:1, one switch", 8, {}, sends(incast(8, 7))},
      {"incast 15:1 between leaves", 16, leaf_spine(4, 2, 2), sends(incast(16, 15))},
      {"incast 4:1 of 1, 2, 3 and 4 parts",
       8,
       {},
       sends({{0, 7, 2e6}, {1, 7, 4e6}, {2, 7, 6e6}, {3, 7, 8e6}})},
      {"1:7 from one NIC", 8, {}, sends({{0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}, {0, 6}, {0, 7}})},
      {"permutation, ECMP collisions", 16, leaf_spine(4, 4, 1), sends(permutation(16, 1))},
      {"permutation, another", 16, leaf_spine(4, 4, 1), sends(permutation(16, 7))},
      {"permutation, 4:1 oversubscribed", 16, leaf_spine(4, 1, 4), sends(permutation(16, 3))},
      {"a long flow and one on each of its links", 8, leaf_spine(4, 1, 2),
       sends({{0, 2}, {1, 4}, {6, 3, 6e6}})},
      {"an incast and its victim", 8, leaf_spine(2, 1, 2), sends({{0, 4}, {1, 4}, {2, 4}, {3, 5}})},
      {"flows that come while others pass", 8, leaf_spine(2, 1, 4),
       sends({{0, 4, 6e6}, {1, 5, 3e6, 200}, {2, 6, 3e6, 400}, {3, 7, 1e6, 700}})},
      {"a degraded link", 8, with_slow_link(leaf_spine(2, 2, 1), "leaf0-spine0", 50e9),
       sends({{0, 4}, {1, 5}, {2, 6}, {3, 7}, {0, 5}, {1, 6}})},
      {"all-reduce ring, 4:1 oversubscribed, ranks at alternate leaves", 8, leaf_spine(2, 1, 4),
       [](SmallJob& job, double scale) {
         add(job, scale, Func::all_reduce, 16e6, {0, 4, 1, 5, 2, 6, 3, 7});
       }},
      {"two rings crossing, 2:1 oversubscribed", 16, leaf_spine(4, 2, 2),
       [](SmallJob& job, double scale) {
         add(job, scale, Func::all_reduce, 16e6, every(0, 2, 8));
         add(job, scale, Func::all_reduce, 16e6, every(1, 2, 8));
       }},
      {"four rings of one rank per leaf, ECMP", 16, leaf_spine(4, 4, 1),
       [](SmallJob& job, double scale) {
         for (int ring = 0; ring < 4; ++ring)
           add(job, scale, Func::all_reduce, 16e6, every(ring, 4, 4));
       }},
      {"a ring and transfers across it", 8, leaf_spine(2, 1, 2),
       [](SmallJob& job, double scale) {
         add(job, scale, Func::all_gather, 4e6, {0, 4, 1, 5});
         add(job, scale, {{2, 6, 16e6}, {3, 7, 16e6}});
       }},
      {"all-to-all, 4:1 oversubscribed", 8, leaf_spine(2, 1, 4),
       [](SmallJob& job, double scale) { add(job, scale, Func::all_to_all, 2e6, every(0, 1, 8)); }},
  };
  return kCases;
}

ContendedCase interrupted_case() {
  return {"a long message and short ones",
          5,
          {},
          sends({{0, 4, 8e6}, {1, 4, 4e3, 50}, {2, 4, 4e3, 200}, {3, 4, 4e3, 500}})};
}

SmallJob contended_job(const ContendedCase& contended, NetworkModel model, Queues queues,
                       double scale) {
  SmallJob job(contended.nodes, 1, FabricKind::virtual_time);
  JobSpec& spec = job.spec;
  spec.cluster.nic = {kNicRate, kNicLatency};
  spec.cluster.topology = contended.topology;
  spec.collectives.algorithm(Func::all_to_all) = "linear";
  spec.fabric.network = model;
  spec.fabric.framing = kFraming;
  const CongestionControl& none = congestion_controls()[1];
  if (queues == Queues::fair) {
    spec.fabric.queues.scheduling = Scheduling::fair;
    spec.fabric.queues.control = &none;
    spec.fabric.queues.pause = false;
    spec.fabric.queues.buffer = 64 << 20;
    spec.fabric.queues.window = 256 << 10;
  }
  if (queues == Queues::pauses) spec.fabric.queues.control = &none;
  contended.add(job, scale);
  return job;
}

const std::vector<LoneCollective>& lone_collectives() {
  static const std::vector<LoneCollective> kLone{
      {"all-reduce, ring", Func::all_reduce, "ring", 2 * (kMembers - 1), kMembers},
      {"all-reduce, recursive doubling", Func::all_reduce, "recursive_doubling", 3, 1},
      {"reduce-scatter, ring", Func::reduce_scatter, "ring", kMembers - 1, 1},
      {"all-gather, ring", Func::all_gather, "ring", kMembers - 1, 1},
      {"broadcast, chain", Func::broadcast, "chain", kMembers - 1, 1},
      {"reduce, binomial", Func::reduce, "binomial", 3, 1},
      {"all-to-all, pairwise", Func::all_to_all, "pairwise", kMembers - 1, 1},
      {"barrier, dissemination", Func::barrier, "dissemination", 3, 0},
  };
  return kLone;
}

SmallJob lone_job(const LoneCollective& lone, NetworkModel model, std::uint64_t bytes) {
  SmallJob job(kMembers, 1, FabricKind::virtual_time);
  job.spec.cluster.nic = {kNicRate, kNicLatency};
  job.spec.collectives.algorithm(lone.func) = lone.algorithm;
  job.spec.fabric.network = model;
  job.spec.fabric.framing = kFraming;
  job.collective(lone.func, lone.share_of == 0 ? 0 : bytes / 4);
  return job;
}

double closed_form(const LoneCollective& lone, NetworkModel model, std::uint64_t bytes) {
  const std::uint64_t message = lone.share_of == 0 ? 0 : bytes / lone.share_of;
  const auto wire = [](std::uint64_t size) {
    return static_cast<double>(kFraming.on_wire(size)) * 8 / kNicRate;
  };
  // The switch has all of a packet before it sends it on; the first is the largest.
  const double stored =
      model == NetworkModel::packet ? wire(std::min<std::uint64_t>(message, 1024)) : 0;
  return lone.steps * (seconds(kNicLatency) + wire(message) + stored);
}

}  // namespace ghostrank::testing
