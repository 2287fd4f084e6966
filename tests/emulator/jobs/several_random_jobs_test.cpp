// Several jobs at random on an ideal switch: nobody loses anything, and with real data they compute
// what they should.
#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "profiles/planners/background/background.h"
#include "tests/emulator/events.h"
#include "tests/emulator/jobs/integers.h"
#include "tests/emulator/jobs/several_jobs.h"
#include "tests/emulator/support.h"
#include "tests/one_of.h"

namespace ghostrank {
namespace {

using testing::compress_by;
using testing::Placed;
using testing::seconds_of;
using testing::SmallJob;
using testing::together;

constexpr double kIdealRate = 100e9;

// A job of random calls on so many nodes.
SmallJob random_job(std::mt19937& random, int nodes, int gpus) {
  SmallJob job(nodes, gpus, FabricKind::virtual_time);
  const char* libraries[] = {"generic", "nccl-2.28", "gloo", "openmpi-4.1"};
  job.spec.collectives.library = libraries[random() % 4];
  job.workload.groups.clear();
  job.workload.group_names = {"all", "pairs"};
  job.workload.groups.push_back({0, world_ranks(job.workload.ranks)});
  for (int r = 0; r + 1 < job.workload.ranks; r += 2)
    job.workload.groups.push_back({1, {WorldRank(r), WorldRank(r + 1)}});
  for (int ops = 1 + static_cast<int>(random() % 4); ops > 0; --ops) {
    job.compute(static_cast<Picoseconds>(1 + random() % 50) * kPicosPerMicro);
    const Func funcs[] = {Func::all_reduce, Func::all_gather, Func::broadcast};
    job.collective(funcs[random() % 3], 1 + random() % 20'000);
  }
  if (job.workload.ranks % 2 == 0) {
    Op pair;
    pair.kind = Op::Kind::collective;
    pair.group = 1;
    pair.count = 1 + random() % 3'000;
    job.program().streams[0].push_back(pair);
  }
  if (random() % 2 == 0) {  // a stream that outlives its iteration
    Program& program = job.program();
    program.stream_names.emplace_back("late");
    program.streams.push_back(OpList{Op{.duration = 80 * kPicosPerMicro}});
    program.outlives = {false, true};
  }
  return job;
}

// Sums the job's all-reduces at servers of its own or in the switch. Returns true.
bool add_scheme(std::mt19937& random, SmallJob& job) {
  JobSpec& spec = job.spec;
  const std::string scheme =
      test::one_of<const char*>(random, {"parameter_server", "byteps", "switchml", "sharp",
                                         "omnireduce", "atp", "omnireduce_switch"});
  spec.collectives.algorithm(Func::all_reduce) = scheme;
  if (scheme == "omnireduce_switch") testing::reduce_integers(job.program());
  spec.collectives.at_servers = {.big_array = 5000, .chunk_bytes = 4096};
  spec.collectives.at_servers.partition_bytes = 4096;
  spec.cluster.servers.count = 1 + static_cast<int>(random() % 2);
  spec.cluster.servers.colocated = random() % 2 == 0;
  return true;
}

// Compresses a tensor that the job reduces by some method.
void add_compression(std::mt19937& random, SmallJob& job) {
  job.collective(Func::all_reduce, 2'000, DataType::float32, 0, 1);
  const char* methods[] = {"topk", "qsgd", "powersgd", "onebit"};
  compress_by(methods[random() % 4], {.ratio = 0.05}, job);
}

// Patterns among so many nodes. A bisection needs two halves.
std::vector<Background> random_background(std::mt19937& random, int nodes) {
  std::vector<Background> list;
  for (const auto pattern : {Background::Pattern::incast, Background::Pattern::permutation,
                             Background::Pattern::bisection}) {
    if (random() % 2 == 0 || (pattern == Background::Pattern::bisection && nodes % 2 != 0))
      continue;
    Background& one = list.emplace_back();
    one.pattern = pattern;
    one.every = 1 + static_cast<int>(random() % 3);
    one.over = 1 + static_cast<int>(random() % static_cast<unsigned>(one.every));
    one.bytes = 1 + random() % 200'000;
    one.chunk = 1 + random() % 100'000;
    one.rate_bps = random() % 2 == 0 ? 0 : kIdealRate / 10;
    one.blocking = random() % 2 == 0;
  }
  return list;
}

// Stragglers of either job, and connections with several queue pairs, drawn apart from the rest.
void add_events_and_pairs(unsigned seed, SmallJob& job) {
  std::mt19937 random(seed + 1000);
  if (random() % 3 > 0) {
    std::vector<JobEvent> events = testing::random_events(random, job.spec, job.workload.ranks);
    for (JobEvent& event : events) event.iteration.reset();  // each job has its own
    testing::with_events(job, std::move(events));
  }
  job.spec.fabric.queue_pairs = {test::one_of(random, {1u, 2u, 4u}), random() % 2 == 0};
}

// Where no NIC and no link is shared, nobody loses anything, whatever the jobs do and wherever they
// are; and with real data they compute what they should.
TEST(SeveralJobs, AtRandomLoseNothingOnAnIdealSwitch) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    std::mt19937 random(seed);
    const int gpus = 1 + static_cast<int>(random() % 2);
    SmallJob cluster(9, gpus, FabricKind::virtual_time);
    cluster.spec.cluster.nic = {kIdealRate, 2 * kPicosPerMicro};
    std::vector<int> nodes(9);
    std::iota(nodes.begin(), nodes.end(), 0);
    std::shuffle(nodes.begin(), nodes.end(), random);
    std::vector<Placed> jobs;
    bool has_scheme = false;
    for (int n = 2 + static_cast<int>(random() % 2); n > 0; --n) {
      const int size = 2 + static_cast<int>(random() % 2);
      jobs.push_back({random_job(random, size, gpus), {nodes.end() - size, nodes.end()}});
      nodes.resize(nodes.size() - static_cast<std::size_t>(size));
      SmallJob& own = jobs.back().job;
      has_scheme |= random() % 3 == 0 && add_scheme(random, own);
      if (random() % 3 == 0 &&
          own.spec.collectives.algorithm(Func::all_reduce) != "omnireduce_switch")
        add_compression(random, own);
      own.spec.background = random_background(random, size);
      add_background(own.spec, own.workload);
    }
    const int idle = static_cast<int>(nodes.size());
    std::vector<Background> traffic;
    if (idle >= 2) traffic = random_background(random, idle);
    if (!traffic.empty()) {
      jobs.push_back({SmallJob(idle, gpus, FabricKind::virtual_time), nodes});
      SmallJob& beside = jobs.back().job;
      beside.spec.background = traffic;
      beside.workload = plan_background(beside.spec);
      cluster.spec.background = traffic;
    }
    SmallJob job = together(cluster, jobs);
    job.spec.run.iterations = 2;
    job.spec.run.jitter = 0.2;
    add_events_and_pairs(seed, job);
    for (const NetworkModel network :
         {NetworkModel::loggp, NetworkModel::flow, NetworkModel::packet}) {
      if (network != NetworkModel::loggp && has_scheme) continue;
      job.spec.fabric.network = network;
      const Result result = job.run();
      for (const JobReport& one : result.jobs) {
        SCOPED_TRACE("jobs " + std::to_string(seed) + ", job " + one.name + ", network " +
                     std::to_string(static_cast<int>(network)));
        const bool awaited = traffic.empty() || &one != &result.jobs.back();
        EXPECT_GE(one.iterations.size(), awaited ? 2u : 0u);
        if (one.iterations.empty()) continue;  // of traffic
        EXPECT_EQ(seconds_of(one.iterations), seconds_of(one.alone));
        EXPECT_EQ(one.slowdown(), 1);
      }
    }
    job.spec.fabric.network = NetworkModel::loggp;
    job.spec.fabric.kind = FabricKind::memory;
    job.spec.fabric.inside_node = InsideNode::messages;
    job.spec.dilation = 1;
    job.spec.run.verify = true;
    job.spec.run.shards = 1 + static_cast<int>(random() % 3);
    const Result result = job.run();
    EXPECT_EQ(result.interrupted, "");
    EXPECT_EQ(result.verify->wrong_elements, 0u) << seed;
    EXPECT_GT(result.verify->checked_elements, 0u) << seed;
  }
}

}  // namespace
}  // namespace ghostrank
