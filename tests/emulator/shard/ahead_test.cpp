// Ranks that run ahead of the clock, against the same job event by event.
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/common/dice.h"
#include "profiles/workload/program_builder.h"
#include "tests/emulator/events.h"

namespace ghostrank {
namespace {

using testing::report_text;
using testing::SmallJob;

constexpr int kNodes = 3, kGpus = 4;

// Passes of delays and calls of the node's group; each ends with an op that leaves the node or that
// the other stream waits for. That stream then calls across nodes, or within the node, which keeps
// ranks from running ahead.
Program random_program(checking::Dice& dice) {
  const std::uint16_t aside = dice.below(4) == 0 ? 0 : 1;
  ProgramBuilder out({"compute", "other"});
  const auto delay = [&] {
    out.compute(0, "work", static_cast<Picoseconds>(dice.below(50)) * kPicosPerMicro);
  };
  for (std::uint64_t pass = 2 + dice.below(4); pass > 0; --pass) {
    for (std::uint64_t n = dice.below(6); n > 0; --n) {
      if (dice.below(2) == 0) delay();
      out.collective(0, "inside", Func::all_reduce, 0, DataType::float32,
                     1000 * (1 + dice.below(3)));
    }
    if (dice.below(2) == 0) delay();
    switch (dice.below(3)) {
      case 0:
        out.collective(0, "across", Func::all_reduce, 1, DataType::float32, 5000);
        break;
      case 1:
        out.send(0, out.label("send"), 1, 1, DataType::float32, 20'000);
        out.recv(0, out.label("receive"), 1, -1, DataType::float32, 20'000);
        break;
      default:
        out.after(1, 0);
        out.collective(1, "aside", Func::all_gather, aside, DataType::float32, 500);
        out.after(0, 1);
    }
  }
  return out.take();
}

SmallJob random_job(checking::Dice& dice) {
  SmallJob job(kNodes, kGpus, FabricKind::virtual_time);
  job.spec.cluster.nic = {100e9, 3 * kPicosPerMicro};
  job.spec.run.iterations = 2;
  job.spec.run.jitter = dice.below(2) == 0 ? 0 : 0.1;
  if (dice.below(2) == 0) job.spec.fabric.network = NetworkModel::flow;
  Workload& w = job.workload;
  w.group_names = {"node", "across"};
  w.groups.clear();
  for (int node = 0; node < kNodes; ++node) {
    w.groups.push_back({0, {}});
    for (int gpu = 0; gpu < kGpus; ++gpu)
      w.groups.back().members.push_back(WorldRank(node * kGpus + gpu));
  }
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    w.groups.push_back({1, {}});
    for (int node = 0; node < kNodes; ++node)
      w.groups.back().members.push_back(WorldRank(node * kGpus + gpu));
  }
  w.roles[0].iterations = {random_program(dice)};
  std::mt19937 random(static_cast<unsigned>(dice.below(1000)));
  if (random() % 2 == 0)
    testing::with_events(job, testing::random_events(random, job.spec, w.ranks));
  return job;
}

// The same job with a further stream that does nothing and has two workers, which keep ranks from
// running ahead.
SmallJob event_by_event(SmallJob job) {
  Program& program = job.program();
  program.stream_names.push_back("idle");
  program.streams.emplace_back();
  program.at_once.assign(program.streams.size(), 1);
  program.at_once.back() = 2;
  return job;
}

TEST(Ahead, ChangesNothingThatARunSays) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    checking::Dice dice(seed);
    const SmallJob job = random_job(dice);
    const Result ahead = job.run(), by_events = event_by_event(job).run();
    ASSERT_EQ(ahead.interrupted, "") << "seed " << seed;
    ASSERT_EQ(report_text(ahead), report_text(by_events)) << "seed " << seed;
  }
}

// Two streams come to calls that leave the node at one time, when a delay ends.
TEST(Ahead, TracedAndVerifiedRunsSayTheSame) {
  SmallJob job(kNodes, 1, FabricKind::virtual_time);
  job.spec.cluster.nic = {100e9, 3 * kPicosPerMicro};
  job.workload.group_names.push_back("aside");
  job.workload.groups.push_back({1, job.workload.groups[0].members});
  ProgramBuilder out({"compute", "other"});
  out.compute(1, "work", 10 * kPicosPerMicro);
  out.after(0, 1);
  out.collective(0, "across", Func::all_reduce, 0, DataType::float32, 5000);
  out.collective(1, "aside", Func::all_gather, 1, DataType::float32, 500);
  job.program() = out.take();
  const std::string plain = report_text(job.run());
  RunOptions traced;
  traced.trace_ranks = {WorldRank(1)};
  EXPECT_EQ(report_text(job.run(nullptr, traced)), plain);
  job.spec.run.verify = true;
  EXPECT_EQ(report_text(job.run()), plain);
}

}  // namespace
}  // namespace ghostrank
