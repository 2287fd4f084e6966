// Small jobs for the engine's tests: one collective (or any program) on a small emulated cluster.
#pragma once

#include <initializer_list>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "emulator/control/control.h"
#include "emulator/engine.h"
#include "emulator/traffic/traffic.h"
#include "profiles/job/job.h"
#include "profiles/load/load.h"

namespace ghostrank::testing {

struct SmallJob {
  JobSpec spec;
  Workload workload;

  SmallJob(int nodes, int gpus, FabricKind kind) {
    spec.cluster.nodes = nodes;
    spec.cluster.gpus_per_node = gpus;
    spec.cluster.nics_per_node = gpus;
    spec.fabric.kind = kind;
    spec.run.iterations = 1;
    spec.run.warmup = 0;
    spec.run.stall_timeout_s = 5;
    spec.dilation = kind == FabricKind::virtual_time ? 0 : 4;
    workload.ranks = nodes * gpus;
    workload.group_names = {"all"};
    workload.role_of.assign(workload.ranks, 0);
    workload.groups.push_back({0, world_ranks(workload.ranks)});
    workload.roles.push_back({"all", {Program{{"compute"}, {{}}, {"op"}, 0}}});
  }

  Program& program() { return workload.roles[0].iterations[0]; }

  SmallJob& collective(Func func, std::uint64_t count, DataType type = DataType::float32,
                       GroupRank root = 0, std::uint32_t tensor = 0,
                       Reduction reduction = Reduction::sum) {
    Op op;
    op.kind = Op::Kind::collective;
    op.func = func;
    op.count = count;
    op.dtype = type;
    op.peer = root;
    op.tensor = tensor;
    op.reduction = reduction;
    program().streams[0].push_back(op);
    return *this;
  }

  // A collective of a v-variant.
  SmallJob& collective(Func func, Counts counts, DataType type = DataType::float32) {
    Op op;
    op.kind = Op::Kind::collective;
    op.func = func;
    op.dtype = type;
    op.counts = static_cast<std::uint32_t>(workload.counts.size());
    program().streams[0].push_back(op);
    workload.counts.push_back(std::move(counts));
    return *this;
  }

  SmallJob& compute(Picoseconds duration) {
    Op op;
    op.duration = duration;
    program().streams[0].push_back(op);
    return *this;
  }

  Result run(Observer* observer = nullptr, const RunOptions& options = {}) const {
    const auto control = Control::meet(World{});
    return run(*control, observer, options);
  }

  // Plays the job as one of several processes.
  Result run(Control& control, Observer* observer = nullptr, const RunOptions& options = {}) const {
    Observer nobody;
    LoadedJob job;
    job.spec = spec;
    return run_job(job, workload, control, options, observer ? *observer : nobody);
  }
};

// Adds transfers (from, to) to ranks that each have a role of their own. Those of a rank come one
// after the other.
inline void append_sends(SmallJob& job, const std::vector<std::pair<int, int>>& pairs,
                         std::uint64_t count = 250'000) {
  for (const auto& [from, to] : pairs) {
    Op op;
    op.count = count;
    op.kind = Op::Kind::send;
    op.peer = to - from;
    job.workload.roles[from].iterations[0].streams[0].push_back(op);
    op.kind = Op::Kind::recv;
    op.peer = from - to;
    job.workload.roles[to].iterations[0].streams[0].push_back(op);
  }
}

// Gives each rank a role of its own, and adds transfers.
inline SmallJob& with_sends(SmallJob& job, const std::vector<std::pair<int, int>>& pairs,
                            std::uint64_t count = 250'000) {
  job.workload.roles.assign(job.workload.role_of.rows().size(), job.workload.roles[0]);
  for (const WorldRank r : job.workload.role_of.keys())
    job.workload.role_of[r] = static_cast<std::uint16_t>(r.value());
  append_sends(job, pairs, count);
  return job;
}

// The bytes and messages of every NIC pair per iteration, and those inside nodes.
inline std::string ledger_text(const Result& result) {
  std::ostringstream text;
  for (const PairTraffic& p : result.pairs) {
    text << p.source_nic << ">" << p.target_nic << " " << p.bytes << " " << p.messages << "\n";
  }
  text << result.intra_node_bytes_per_iteration << " " << result.intra_node_messages_per_iteration
       << "\n";
  return text.str();
}

// What the run says, but for spans.
inline std::string report_text(const Result& result) {
  std::ostringstream text;
  text.precision(17);
  for (const IterationReport& i : result.iterations)
    text << i.seconds << ' ' << i.compute_seconds << ' ' << i.exposed_comm_seconds << ' '
         << i.bubble_seconds << ' ' << i.rank_seconds << ' ' << i.rank0_seconds << ' '
         << i.earliest_end << '\n';
  for (const CollectiveReport& c : result.collectives)
    text << c.op << ' ' << c.group << ' ' << c.calls << ' ' << c.bytes << ' ' << c.seconds_median
         << ' ' << c.algbw_GBps << '\n';
  return text.str() + ledger_text(result);
}

// The load of the links.
inline std::string network_text(const Result& result) {
  std::ostringstream text;
  text.precision(17);
  if (!result.network) return "none";
  for (const LinkTier& t : result.network->tiers)
    text << t.name << " " << t.links << " " << t.bytes << " " << t.messages << " "
         << t.utilisation_mean << " " << t.utilisation_max << " " << t.longest_wait_s.value_or(-1)
         << "\n";
  for (const LinkLoad& l : result.network->hottest)
    text << l.link << " " << l.bytes << " " << l.messages << " " << l.utilisation << " "
         << l.longest_wait_s.value_or(-1) << "\n";
  return text.str();
}

// In virtual time, a run with several shards equals the run with one, to the last bit.
inline void expect_alike_with_shards(SmallJob job, std::initializer_list<int> numbers) {
  job.spec.run.shards = 1;
  const Result one = job.run();
  ASSERT_EQ(one.interrupted, "");
  ASSERT_FALSE(one.iterations.empty());
  for (const int shards : numbers) {
    job.spec.run.shards = shards;
    const Result many = job.run();
    ASSERT_EQ(many.interrupted, "") << shards;
    ASSERT_EQ(many.iterations.size(), one.iterations.size());
    for (std::size_t i = 0; i < one.iterations.size(); ++i)
      EXPECT_EQ(one.iterations[i].seconds, many.iterations[i].seconds) << shards;
    EXPECT_EQ(one.wire_bytes_per_iteration, many.wire_bytes_per_iteration);
    EXPECT_EQ(one.messages_per_iteration, many.messages_per_iteration);
    EXPECT_EQ(network_text(one), network_text(many)) << shards;
  }
}

// The job plays calls of the row's function with it.
inline void choose(CollectiveSpec& spec, const Algorithm& row) {
  spec.library = row.library;
  spec.algorithm(row.func) = row.name;
}

inline void expect_ledger_as_planned(const SmallJob& job, const Result& result) {
  const TrafficPlan plan = plan_traffic(job.spec, job.workload);
  ASSERT_EQ(result.pairs.size(), plan.pairs.size());
  for (std::size_t i = 0; i < plan.pairs.size(); ++i) {
    EXPECT_EQ(result.pairs[i].source_nic, plan.pairs[i].source_nic);
    EXPECT_EQ(result.pairs[i].target_nic, plan.pairs[i].target_nic);
    EXPECT_EQ(result.pairs[i].bytes, plan.pairs[i].bytes);
    EXPECT_EQ(result.pairs[i].messages, plan.pairs[i].messages);
  }
  EXPECT_EQ(result.intra_node_bytes_per_iteration, static_cast<double>(plan.intra_bytes));
  EXPECT_EQ(result.intra_node_messages_per_iteration, static_cast<double>(plan.intra_messages));
}

}  // namespace ghostrank::testing
