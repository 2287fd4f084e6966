// Slices of random jobs: in virtual time they take the steps of the whole job, to the last bit,
// whatever its library, plan and jitter, and send what it sends between their nodes.
#include <algorithm>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/common/dice.h"
#include "emulator/shard/on_the_way/slice_edge.h"
#include "profiles/error.h"
#include "profiles/planners/plan.h"
#include "tests/emulator/play.h"
#include "tests/emulator/shard/slice_traffic.h"
#include "tests/emulator/support.h"
#include "tests/one_of.h"
#include "tests/profiles/support.h"
#include "tests/variable.h"

namespace ghostrank {
namespace {

using testing::append_sends;
using testing::SmallJob;
using testing::traffic_of;
using testing::with_sends;

// Some nodes of the cluster, but not all.
std::vector<Node> random_slice(checking::Dice& dice, int nodes) {
  const std::uint64_t taken = 1 + dice.below((std::uint64_t{1} << nodes) - 2);
  std::vector<Node> slice;
  for (int node = 0; node < nodes; ++node)
    if (taken >> node & 1) slice.emplace_back(node);
  return slice;
}

// Rounds of collectives and of transfers by a random permutation; ranks compute for different
// times.
SmallJob random_job(std::uint64_t seed) {
  checking::Dice dice(seed);
  const int nodes = static_cast<int>(2 + dice.below(4)), gpus = static_cast<int>(1 + dice.below(3));
  SmallJob job(nodes, gpus, FabricKind::virtual_time);
  JobSpec& spec = job.spec;
  spec.cluster.nics_per_node = static_cast<int>(1 + dice.below(static_cast<std::uint64_t>(gpus)));
  spec.cluster.nic = {dice.below(4) == 0 ? 0 : 1e11,
                      static_cast<Picoseconds>(1 + dice.below(9)) * kPicosPerMicro};
  constexpr const char* kLibraries[] = {"generic", "generic", "gloo", "nccl-2.28", "openmpi-4.1"};
  spec.collectives.library = kLibraries[dice.below(5)];
  if (spec.collectives.library == "generic") {
    spec.collectives.slice_bytes = dice.below(2) * 10'000;
    spec.collectives.credits = static_cast<std::uint32_t>(dice.below(3));
  }
  spec.fabric.inside_node = dice.below(2) == 0 ? InsideNode::model : InsideNode::messages;
  spec.run.iterations = 3;
  spec.run.warmup = static_cast<int>(dice.below(2));
  spec.run.jitter = dice.below(2) == 0 ? 0 : 0.1;
  spec.run.compute_slowdown = dice.below(3) == 0 ? 0.2 : 0;
  spec.run.seed = seed;
  constexpr Func kFuncs[] = {Func::all_reduce, Func::all_gather, Func::broadcast, Func::all_to_all};
  std::vector<int> to(job.workload.ranks);
  std::iota(to.begin(), to.end(), 0);
  for (std::size_t i = to.size(); i-- > 1;) std::swap(to[i], to[dice.below(i + 1)]);
  with_sends(job, {});
  for (std::uint64_t rounds = 1 + dice.below(3); rounds > 0; --rounds) {
    std::vector<std::pair<int, int>> pairs;
    for (int r = 0; r < job.workload.ranks; ++r)
      if (to[r] != r) pairs.push_back({r, to[r]});
    Op op;
    op.kind = Op::Kind::collective;
    op.func = kFuncs[dice.below(4)];
    op.count = 1000 * (1 + dice.below(100));
    for (Role& role : job.workload.roles) {
      Op compute;
      compute.duration = static_cast<Picoseconds>(dice.below(50)) * kPicosPerMicro;
      role.iterations[0].streams[0].push_back(compute);
      role.iterations[0].streams[0].push_back(op);
    }
    append_sends(job, pairs, 50'000);
  }
  return job;
}

void expect_same(const Result& whole, const Result& slice, const JobSpec& spec) {
  ASSERT_EQ(whole.interrupted, "");
  ASSERT_EQ(slice.interrupted, "");
  ASSERT_TRUE(slice.slice);
  ASSERT_EQ(whole.iterations.size(), slice.iterations.size());
  for (std::size_t i = 0; i < whole.iterations.size(); ++i)
    EXPECT_EQ(whole.iterations[i].seconds, slice.iterations[i].seconds) << i;
  EXPECT_EQ(traffic_of(whole, spec.slice, spec.cluster.nics_per_node), traffic_of(slice));
}

TEST(Slices, OfRandomJobsTakeTheStepsOfTheWholeJob) {
  const std::uint64_t jobs = test::number_in("GHOSTRANK_RANDOM_JOBS", 100);
  for (std::uint64_t seed = 0; seed < jobs; ++seed) {
    SCOPED_TRACE("job " + std::to_string(seed));
    SmallJob job = random_job(seed);
    const Result whole = job.run();
    checking::Dice dice(seed + 1000);
    job.spec.slice = random_slice(dice, job.spec.cluster.nodes);
    job.spec.run.shards = static_cast<int>(1 + dice.below(3));
    expect_same(whole, job.run(), job.spec);
    if (HasFailure()) return;  // one failing job is enough to look into
  }
}

std::string random_plan(std::uint64_t seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  const auto any = [&](const std::vector<const char*>& words) {
    return std::string(words[random() % words.size()]);
  };
  const int nodes = test::one_of(random, {2, 3, 4}), gpus = test::one_of(random, {2, 4});
  std::string text =
      "schema: ghostrank/job/1\n"
      "model: {kind: transformer, architecture: llama, norm: rmsnorm, layers: 4, hidden: 192, "
      "heads: 12, ffn: 384, gated_ffn: true, bias: false, sequence: 48, vocabulary: 1536, "
      "tied_embeddings: false, position_embeddings: rope}\n"
      "device: {peak_tflops: {bf16: 1.0}, efficiency: 1, memory_GBps: 1000}\n"
      "precision: {parameters: bf16}\n";
  const std::string framework = any({"megatron", "torchtitan", "fsdp", "zero1", "zero3", "ddp",
                                     "horovod", "dear", "wfbp", "mgwfbp", "bytescheduler"});
  text += "parallel: {framework: " + framework;
  if (framework == "megatron" || framework == "torchtitan") {
    const int pp = test::one_of(random, {1, 2});
    text += ", tp: " + any({"1", "2"}) + ", pp: " + std::to_string(pp) +
            ", global_batch: " + std::to_string(nodes * gpus * pp);
    if (framework == "megatron") text += ", distributed_optimizer: " + any({"true", "false"});
  }
  text += "}\ncluster: {nodes: " + std::to_string(nodes) +
          ", gpus_per_node: " + std::to_string(gpus) + ", nics_per_node: " + any({"1", "2"}) +
          ", nic: {rate: " + any({"10", "100"}) + "Gbps, latency_us: 2}}\n";
  text +=
      "collectives: {library: " + any({"generic", "nccl-2.28"}) + "}\nfabric: {kind: virtual}\n";
  return text + "run: {warmup: 1, iterations: 2, jitter: " + any({"0", "0.05"}) + "}\n";
}

TEST(Slices, OfRandomPlansTakeTheStepsOfTheWholeJob) {
  const std::uint64_t jobs = test::number_in("GHOSTRANK_RANDOM_JOBS", 40);
  std::uint64_t played = 0;
  for (std::uint64_t seed = 0; seed < jobs; ++seed) {
    const std::string text = random_plan(seed);
    SCOPED_TRACE(text);
    std::optional<LoadedJob> job;
    try {
      job = test::load_text(text);
      plan_workload(job->spec);
    } catch (const Error&) {
      continue;  // the job cannot have the plan
    }
    ++played;
    const Result whole = testing::play(*job);
    checking::Dice dice(seed);
    job->spec.slice = random_slice(dice, job->spec.cluster.nodes);
    expect_same(whole, testing::play(*job), job->spec);
    if (HasFailure()) return;
  }
  EXPECT_GE(2 * played, jobs);
}

TEST(Slices, SayWhatWasPlayedAndWhatCrossedTheirBorder) {
  SmallJob job(4, 2, FabricKind::virtual_time);
  job.collective(Func::all_reduce, 100'000);
  job.spec.slice = {Node(1), Node(2)};
  const Result result = job.run();
  ASSERT_TRUE(result.slice);
  EXPECT_EQ(result.slice->nodes, "1-2");
  EXPECT_EQ(result.slice->nodes_played, 2);
  EXPECT_EQ(result.slice->of_nodes, 4);
  EXPECT_EQ(result.slice->ranks_played, 4);
  EXPECT_GT(result.slice->bytes_to_outside, 0);
  EXPECT_EQ(result.slice->bytes_to_outside, result.slice->bytes_from_outside);  // a ring
  for (const PairTraffic& p : result.pairs) {
    EXPECT_GE(p.source_nic, Nic(2));
    EXPECT_LT(p.target_nic, Nic(6));
  }
  ASSERT_EQ(result.collectives.size(), 1u);
  EXPECT_EQ(result.collectives[0].calls, 1);
}

TEST(Slices, PlayAllRealTrafficInMemory) {
  SmallJob job(4, 2, FabricKind::virtual_time);
  job.collective(Func::all_reduce, 100'000).compute(kPicosPerMicro);
  job.spec.run.iterations = 3;
  const Result whole = job.run();
  job.spec.fabric.kind = FabricKind::memory;
  job.spec.slice = {Node(0), Node(1)};
  for (const int shards : {1, 2}) {
    job.spec.run.shards = shards;
    job.spec.dilation = 100;
    const Result slice = job.run();
    ASSERT_EQ(slice.interrupted, "");
    EXPECT_EQ(slice.iterations.size(), 3u);
    EXPECT_EQ(traffic_of(whole, job.spec.slice, 2), traffic_of(slice));
  }
}

TEST(Slices, RefuseSchemesWhoseAgentsAreOutside) {
  SmallJob job(4, 1, FabricKind::virtual_time);
  job.collective(Func::all_reduce, 1000);
  job.spec.collectives.algorithm(Func::all_reduce) = "switchml";
  job.spec.slice = {Node(0)};
  EXPECT_NE(test::error_of([&] { job.run(); }).find("switchml has agents"), std::string::npos);
}

TEST(CrossingRecorder, SaysHowLongAfterItsDepartureAMessageComes) {
  SmallJob job(2, 1, FabricKind::virtual_time);
  job.spec.slice = {Node(0)};
  const Cluster cluster(job.spec, job.workload, 1);
  CrossingRecorder recorder(cluster);
  EXPECT_TRUE(recorder.is_inside(Node(0)));
  EXPECT_FALSE(recorder.is_inside(Node(1)));
  const OutwardConnection outward{.rank = WorldRank(0), .peer = 1};
  const std::uint32_t number = recorder.connection(outward);
  EXPECT_EQ(recorder.connection(outward), number);
  const Picoseconds first = recorder.left(number, 100), second = recorder.left(number, 200);
  EXPECT_GT(second, first);  // of two chains that end together the later one counts
  Event e;
  e.t = {50, 0};  // from nothing that left
  recorder.comes(e, WorldRank(1), WorldRank(0));
  e.t = {270, second};
  recorder.comes(e, WorldRank(1), WorldRank(0));
  recorder.ended(7, {300, first});
  recorder.ended(7, {290, second});
  const Crossings all = recorder.take();
  ASSERT_EQ(all.lines.size(), 2u);
  EXPECT_TRUE(all.lines[1].ends);
  ASSERT_EQ(all.arrivals.size(), 3u);
  EXPECT_EQ(all.independent, std::vector<std::uint32_t>{0});
  EXPECT_EQ(all.arrivals[0].event.t.at, 50);
  EXPECT_EQ(all.arrivals[2].event.sequence, 7u);
  ASSERT_EQ(all.departures.size(), 2u);
  EXPECT_EQ(all.departures[1].number, 1u);
  ASSERT_EQ(all.released.size(), 2u);
  EXPECT_EQ(all.released[0].arrival, 2u);
  EXPECT_EQ(all.released[0].delay, 200);
  EXPECT_EQ(all.released[1].arrival, 1u);
  EXPECT_EQ(all.released[1].delay, 70);
  EXPECT_EQ(all.connection_of.at(outward), 0u);
  EXPECT_TRUE(recorder.take().connections.empty());  // it began anew
}

// Else a late slice would get credits for messages that it has yet to send.
TEST(CrossingRecorder, LetsACreditComeAfterTheMessageThatItAnswers) {
  SmallJob job(2, 1, FabricKind::virtual_time);
  job.spec.slice = {Node(0)};
  const Cluster cluster(job.spec, job.workload, 1);
  CrossingRecorder recorder(cluster);
  const std::uint32_t number =
      recorder.connection({.rank = WorldRank(0), .peer = 1, .group = 3, .sequence = 4});
  const Picoseconds first = recorder.left(number, 100);
  recorder.left(number, 110);
  Event credit;
  credit.group = 3;
  credit.sequence = 4;
  credit.source = 1;
  credit.message = MessageKind::credit;
  for (const Picoseconds at : {150, 160}) {  // both held up by the first message
    credit.t = {at, first};
    recorder.comes(credit, WorldRank(1), WorldRank(0));
  }
  const Crossings all = recorder.take();
  EXPECT_EQ(all.arrivals[0].parts, 1u);
  EXPECT_EQ(all.arrivals[1].parts, 2u);
  SliceEdge edge;
  edge.begin(all);
  std::vector<Picoseconds> came;
  const auto comes = [&](std::uint32_t, const Moment& at) { came.push_back(at.at); };
  edge.know(0, {150, 0}, comes);
  edge.know(1, {160, 0}, comes);
  EXPECT_EQ(came, std::vector<Picoseconds>{150});
  edge.know(1, {500, 0}, comes);  // the second message has come to the outside
  EXPECT_EQ(came, (std::vector<Picoseconds>{150, 500}));
}

// A table of one line with two arrivals, the second of which belongs to an earlier departure.
Crossings two_arrivals() {
  Crossings all;
  all.lines = {{WorldRank(0), false, 0, 2}};
  all.arrivals.resize(2);
  all.connections = {{0, 2}};
  all.departures = {{0, 0, 1}, {3, 1, 2}};
  all.releases = {{Host(0), 0, 0, 1}, {Host(0), 0, 1, 2}};
  all.released = {{1, 0}, {0, 0}};
  all.connection_of[{.rank = WorldRank(0), .peer = 1}] = 0;
  return all;
}

TEST(SliceEdge, KeepsTheOrderOfALine) {
  const Crossings all = two_arrivals();
  SliceEdge edge;
  edge.begin(all);
  std::vector<std::pair<std::uint32_t, Picoseconds>> came;
  const auto comes = [&](std::uint32_t arrival, const Moment& at) {
    came.emplace_back(arrival, at.at);
  };
  edge.know(1, {100, 0}, comes);
  EXPECT_TRUE(came.empty());  // the one before it may come later
  edge.know(0, {250, 0}, comes);
  EXPECT_EQ(came, (std::vector<std::pair<std::uint32_t, Picoseconds>>{{0, 250}, {1, 250}}));
}

TEST(SliceEdge, CountsTheMessagesOfAConnection) {
  const Crossings all = two_arrivals();
  SliceEdge edge;
  edge.begin(all);
  EXPECT_EQ(edge.connection({.rank = WorldRank(0), .peer = 2}), kNil);
  const std::uint32_t number = edge.connection({.rank = WorldRank(0), .peer = 1});
  ASSERT_EQ(number, 0u);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> released;
  for (int message = 0; message < 6; ++message) released.push_back(edge.left(number));
  EXPECT_EQ(released, (std::vector<std::pair<std::uint32_t, std::uint32_t>>{
                          {0, 1}, {0, 0}, {0, 0}, {1, 2}, {0, 0}, {0, 0}}));
}

}  // namespace
}  // namespace ghostrank
