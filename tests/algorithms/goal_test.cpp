// The GOAL text of every schedule and of whole jobs, read back by a separate reader: sends and
// receives match in number, order and bytes, dependencies do not deadlock, and every rank's data
// reach the ranks that must have them, also where a send ends only when it is received.
#include "collectives/exchange/goal.h"

#include <algorithm>
#include <bitset>
#include <deque>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <tuple>

#include <gtest/gtest.h>

#include "collectives/check/checker.h"
#include "emulator/traffic/job_goal.h"
#include "emulator/traffic/traffic.h"
#include "profiles/error.h"
#include "profiles/load/load.h"
#include "profiles/planners/plan.h"
#include "tests/algorithms/support.h"
#include "tests/collectives/calls.h"

namespace ghostrank {
namespace {

using Ranks = std::bitset<64>;

struct Operation {
  std::string kind;  // send, recv or calc
  std::uint64_t bytes = 0, nanoseconds = 0;
  int peer = -1, tag = 0;
  std::vector<int> after, after_start;  // requires, irequires
  bool started = false, done = false;
  Ranks knows;  // ranks whose data can have reached this operation
};
using Goal = std::vector<std::vector<Operation>>;  // by rank; label l1 is operation 0

std::uint64_t number(std::string text, char unit) {
  EXPECT_EQ(text.back(), unit) << text;
  text.pop_back();
  return std::stoull(text);
}

int label(std::string text) {
  if (text.back() == ':') text.pop_back();
  EXPECT_EQ(text.front(), 'l') << text;
  return std::stoi(text.substr(1)) - 1;
}

void read_line(const std::string& line, std::vector<Operation>& rank) {
  std::istringstream in(line);
  std::string first, word, size, direction, tag;
  in >> first >> word;
  if (word == "requires" || word == "irequires") {
    in >> direction;
    ASSERT_LT(label(direction), static_cast<int>(rank.size()));
    Operation& op = rank.at(label(first));
    return (word == "requires" ? op.after : op.after_start).push_back(label(direction));
  }
  ASSERT_EQ(label(first), static_cast<int>(rank.size())) << line;
  Operation op;
  op.kind = word;
  in >> size;
  if (word == "calc") {
    op.nanoseconds = std::stoull(size);
  } else {
    op.bytes = number(size, 'b');
    in >> direction >> op.peer >> tag >> op.tag;
    ASSERT_EQ(direction, word == "send" ? "to" : "from") << line;
    ASSERT_EQ(tag, "tag") << line;
  }
  ASSERT_FALSE(in.fail()) << line;
  rank.push_back(op);
}

Goal read(const std::string& text) {
  Goal goal;
  std::istringstream in(text);
  std::string line;
  std::getline(in, line);
  const int ranks = std::stoi(line.substr(line.find(' ')));
  while (std::getline(in, line)) {
    if (line == "}") continue;
    if (line.starts_with("rank "))
      goal.emplace_back();
    else
      read_line(line, goal.back());
  }
  EXPECT_EQ(static_cast<int>(goal.size()), ranks);
  return goal;
}

struct Played {
  int unfinished = 0;
  std::size_t left_over = 0, messages = 0;
  std::uint64_t bytes = 0;
  std::vector<Ranks> knows;  // by rank, at its end
};

// When a send ends: at once, or as LogGOPSim's long messages, when it is received.
enum class Sends { eager, rendezvous };

// Runs all operations that can run until none can.
Played play(Goal& goal, Sends sends = Sends::eager) {
  std::map<std::tuple<int, int, int>, std::deque<Operation*>> wires;  // from, to, tag
  Played out;
  const auto start = [&](int r, Operation& op) {
    op.knows.reset();
    op.knows.set(static_cast<std::size_t>(r));
    for (const int a : op.after) {
      if (!goal[r][a].done) return false;
      op.knows |= goal[r][a].knows;
    }
    for (const int a : op.after_start) {
      if (!goal[r][a].started) return false;
      op.knows |= goal[r][a].knows;
    }
    if (op.kind == "send") {
      wires[{r, op.peer, op.tag}].push_back(&op);
      ++out.messages;
      out.bytes += op.bytes;
    }
    return op.started = true;
  };
  const auto step = [&](int r, Operation& op) {
    if (op.done) return false;
    const bool starts = !op.started;
    if (starts && !start(r, op)) return false;
    if (op.kind == "send" && sends == Sends::rendezvous) return starts;
    if (op.kind == "recv") {
      auto& wire = wires[{op.peer, r, op.tag}];
      if (wire.empty()) return starts;
      EXPECT_EQ(wire.front()->bytes, op.bytes);
      op.knows |= wire.front()->knows;
      wire.front()->done = true;
      wire.pop_front();
    }
    return op.done = true;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < goal.size(); ++r)
      for (Operation& op : goal[r]) moved |= step(static_cast<int>(r), op);
  }
  for (const auto& rank : goal) {
    Ranks& knows = out.knows.emplace_back();
    for (const Operation& op : rank) {
      out.unfinished += op.done ? 0 : 1;
      knows |= op.knows;
    }
  }
  for (const auto& [wire, messages] : wires) out.left_over += messages.size();
  return out;
}

// True when a rank that ends with this knowledge has all data that the collective promises it.
bool complete(const Collective& c, int rank, const Ranks& knows) {
  const auto root = static_cast<std::size_t>(c.root);
  switch (c.func) {
    case Func::reduce:
    case Func::gather:
      return rank != c.root || knows.count() == static_cast<std::size_t>(c.size);
    case Func::broadcast:
    case Func::scatter:
      return knows.test(root);
    case Func::send_recv:
      return rank != c.target || knows.test(root);
    case Func::all_gather_v:
    case Func::all_to_all_v:  // an empty block need not come
      for (int from = 0; from < c.size; ++from) {
        const int block = c.func == Func::all_gather_v ? from : from * c.size + rank;
        if ((*c.counts)[block] > 0 && !knows.test(static_cast<std::size_t>(from))) return false;
      }
      return true;
    default:
      return knows.count() == static_cast<std::size_t>(c.size);
  }
}

void expect_whole(const Schedule& schedule, const std::string& what) {
  const Goal goal = read(to_goal(schedule));
  Goal at_once = goal, when_received = goal;
  const Played played = play(at_once);
  EXPECT_EQ(played.unfinished, 0) << what;
  EXPECT_EQ(played.left_over, 0u) << what;
  EXPECT_EQ(play(when_received, Sends::rendezvous).unfinished, 0) << what;
  const CheckReport report = check(schedule);
  ASSERT_TRUE(report.ok) << what << ": " << report.error;
  EXPECT_EQ(played.messages, report.messages) << what;
  EXPECT_EQ(played.bytes, report.bytes) << what;
  for (std::size_t r = 0; r < played.knows.size(); ++r)
    EXPECT_TRUE(complete(schedule.collective(), static_cast<int>(r), played.knows[r]))
        << what << " rank " << r;
}

TEST(Goal, OfEveryAlgorithmMatchesAndEndsWithAllData) {
  for (const Algorithm& row : registry()) {
    if (row.ends) continue;
    int written = 0;
    for (const int size : {1, 2, 5, 8}) {
      if (row.func == Func::send_recv && size == 1) continue;
      std::unique_ptr<Schedule> schedule;
      try {
        schedule = row.make(testing::call(row.func, size, 101, size / 2), {});
      } catch (const std::invalid_argument&) {  // a size that the row refuses
        continue;
      }
      expect_whole(*schedule, std::string(row.library) + "/" + std::string(row.name) + " " +
                                  std::string(name_of(row.func)) + " size " + std::to_string(size));
      ++written;
    }
    EXPECT_GT(written, 0) << row.library << "/" << row.name;
  }
}

TEST(Goal, KeepsTheDependenciesOfAnMscclFile) {
  for (const bool in_place : {true, false}) {
    const auto algorithm = testing::parsed(testing::all_pairs_xml(4, in_place));
    expect_whole(*msccl_schedule(algorithm, {Func::all_reduce, 4, 64, 4, 0}, {}), "all pairs");
  }
}

TEST(Goal, SaysWhatARankDoesInLogGopSimsWords) {
  const auto schedule =
      find_algorithm("generic", Func::send_recv, "direct")->make({Func::send_recv, 2, 8, 4, 0}, {});
  EXPECT_EQ(to_goal(*schedule),
            "num_ranks 2\n"
            "rank 0 {\n"
            "l1: send 32b to 1 tag 0\n"
            "}\n"
            "rank 1 {\n"
            "l1: recv 32b from 0 tag 0\n"
            "}\n");
}

// A transformer of four layers on 8 ranks, split by tp, pp and dp; and layers over gloo, two calls
// at a time.
const char* const kMegatron = R"(schema: ghostrank/job/1
model: {kind: transformer, name: tiny, layers: 4, hidden: 64, heads: 4, ffn: 128, sequence: 32, vocabulary: 128}
device: {base: h100-sxm, memory_bytes: 0}
cluster: {nodes: 4, gpus_per_node: 2, nics_per_node: 2}
parallel: {framework: megatron, tp: 2, pp: 2, dp: 2, micro_batch: 1, global_batch: 8, sequence_parallel: true}
fabric: {kind: virtual}
)";
const char* const kDdp = R"(schema: ghostrank/job/1
model: {kind: layers, name: m, layers: [{name: a, parameters: [100000, 70000], forward_us: 5, backward_us: 9},
                                        {name: b, parameters: [900000, 3], forward_us: 2, backward_us: 4}]}
cluster: {nodes: 4, gpus_per_node: 1, nics_per_node: 1}
parallel: {framework: ddp, bucket_cap_mb: 1, first_bucket_mb: 1}
collectives: {library: gloo}
fabric: {kind: virtual}
)";

// Two streams: `compute` has 2 workers, `comm` outlives its iteration.
const char* const kCarried = R"(schema: ghostrank/job/1
cluster: {nodes: 2, gpus_per_node: 1, nics_per_node: 1}
fabric: {kind: virtual}
program:
  ranks: 2
  groups: {dp: [0-1], tp: [0-1]}
  roles:
    - name: all
      ranks: 0-1
      iterations:
        - compute: |
            workers 2
            compute 1000000
            wait 1 previous
            allreduce tp float32 1024
            record 0
          comm: |
            outlives
            wait 0
            allreduce dp float32 1024
            record 1
)";

// Both ranks receive before they send, in one launch; then two collectives start together.
const char* const kLaunched = R"(schema: ghostrank/job/1
cluster: {nodes: 2, gpus_per_node: 1, nics_per_node: 1}
fabric: {kind: virtual}
program:
  ranks: 2
  groups: {dp: [0-1]}
  roles:
    - name: all
      ranks: 0-1
      iterations:
        - compute: |
            compute 1000000
            recv dp +1 float32 1000
            & send dp +1 float32 1000
            allreduce dp float32 1024
            & allreduce dp float32 2048
            compute 1000000
)";

TEST(GoalOfAJob, SaysWhetherItsMessagesWaitForReceivers) {
  for (const auto& [library, waits] :
       {std::pair("generic", false), std::pair("nccl-2.28", true), std::pair("gloo", true)}) {
    const testing::TemporaryFile file(
        "job.yaml", std::string("model: gpt2\ndevice: h100-sxm\nparallel: {framework: ddp}\n"
                                "cluster: {nodes: 2, gpus_per_node: 1, nics_per_node: 1}\n"
                                "collectives: {library: ") +
                        library + "}\n");
    const LoadedJob job = load_job(file.path(), {});
    std::ostringstream out;
    EXPECT_EQ(write_goal(out, job.spec, plan_workload(job.spec)), waits) << library;
  }
}

TEST(GoalOfAJob, HasAllItsMessagesAndComputeAndComesToAnEnd) {
  for (const char* text : {kMegatron, kDdp, kCarried, kLaunched}) {
    const testing::TemporaryFile file("job.yaml", text);
    const LoadedJob job = load_job(file.path(), {});
    const Workload workload = plan_workload(job.spec);
    std::ostringstream out;
    write_goal(out, job.spec, workload);
    Goal goal = read(out.str());
    const Played played = play(goal);
    EXPECT_EQ(played.unfinished, 0);
    EXPECT_EQ(played.left_over, 0u);
    const TrafficPlan plan = plan_traffic(job.spec, workload);
    EXPECT_EQ(played.messages, plan.wire_messages + plan.intra_messages);
    EXPECT_EQ(played.bytes, plan.wire_bytes + plan.intra_bytes);
    std::uint64_t busiest = 0;
    for (const auto& rank : goal) {
      std::uint64_t computed = 0;
      for (const Operation& op : rank) computed += op.nanoseconds;
      busiest = std::max(busiest, computed);
    }
    EXPECT_NEAR(static_cast<double>(busiest) * 1e-9, plan.compute_seconds,
                plan.compute_seconds * 0.01);  // whole nanoseconds
  }
}

TEST(GoalOfAJob, RefusesSchemesWhoseAgentsDecideAsTheyGo) {
  const testing::TemporaryFile file("job.yaml", kDdp);
  const LoadedJob job = load_job(file.path(), {"collectives.allreduce=sharp"});
  std::ostringstream out;
  EXPECT_THROW(write_goal(out, job.spec, plan_workload(job.spec)), Error);
  EXPECT_EQ(out.str(), "");
  // DDP broadcasts once, before the steady state.
  const LoadedJob before = load_job(file.path(), {"collectives.broadcast=switchml"});
  const Workload workload = plan_workload(before.spec);
  write_goal(out, before.spec, workload);
  EXPECT_NE(out.str(), "");
  EXPECT_THROW(write_goal(out, before.spec, workload, 1), Error);
}

// What is on one cpu takes turns.
TEST(GoalOfAJob, HasACpuForTheComputationsOfEachStreamAndOneForMessages) {
  const testing::TemporaryFile file("job.yaml", R"(schema: ghostrank/job/1
cluster: {nodes: 2, gpus_per_node: 1, nics_per_node: 1}
fabric: {kind: virtual}
program:
  ranks: 2
  groups: {dp: [0-1]}
  roles:
    - name: all
      ranks: 0-1
      iterations:
        - compute: |
            compute 1000000
            record 0
          copies: |
            compute 2000000
          comm: |
            wait 0
            broadcast dp uint8 64
)");
  const LoadedJob job = load_job(file.path(), {});
  std::ostringstream out;
  write_goal(out, job.spec, plan_workload(job.spec));
  EXPECT_TRUE(
      out.str().starts_with("num_ranks 2\n"
                            "rank 0 {\n"
                            "l1: calc 1000 cpu 1\n"
                            "l2: calc 0\n"
                            "l3: calc 2000 cpu 2\n"
                            "l4: calc 0\n"
                            "l5: send 64b to 1 tag 64\n"))
      << out.str();
}

}  // namespace
}  // namespace ghostrank
