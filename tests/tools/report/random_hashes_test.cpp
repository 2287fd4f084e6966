// Random jobs in virtual time, with links, jitter, rates that change, packets lost and events: the
// same run to the last bit for every number of shards, with real data and without, traced or not.
#include <random>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "collectives/schemes/keyed/piece_compression.h"
#include "tests/emulator/events.h"
#include "tests/emulator/jobs/random_job.h"
#include "tests/one_of.h"
#include "tools/report/result_json.h"

namespace ghostrank {
namespace {

using test::one_of;
using testing::SmallJob;

SmallJob virtual_job(unsigned seed, const testing::RandomJob& random) {
  std::mt19937 draw(seed);
  SmallJob job = random.job;
  JobSpec& spec = job.spec;
  spec.fabric.kind = FabricKind::virtual_time;
  spec.dilation = 0;
  spec.run.iterations = 3;
  spec.run.jitter = one_of(draw, {0.0, 0.1});
  if (draw() % 3 == 0 && spec.cluster.servers.nics <= 1) {  // the ranks of a node share a NIC
    spec.cluster.nics_per_node = 1;
    spec.cluster.nic_rates = nullptr;
  }
  if (draw() % 2 == 0) testing::add_rates(draw, spec.cluster, 20);
  if (draw() % 2 == 0) {
    spec.fabric.packets = {.loss = 0.02, .duplicates = 0.02, .reordering = 0.02};
    spec.collectives.in_switch.timeout_ps = spec.collectives.omnireduce.timeout_ps =
        one_of(draw, {1, 10}) * kPicosPerMilli;
  }
  using Kind = TopologySpec::Kind;
  const Kind kind = spec.cluster.topology.kind;  // labels name leaves and spines
  if (draw() % 3 == 0 && kind != Kind::torus && kind != Kind::dragonfly)
    spec.collectives.algorithm(Func::broadcast) = one_of<const char*>(draw, {"orca", "elmo"});
  if (draw() % 2 == 0)
    testing::with_events(job, testing::random_events(draw, spec, job.workload.ranks));
  // In parts, whose number the steps decide.
  if (draw() % 4 == 0) spec.run.end = {.duration = 0, .ci95 = one_of(draw, {0.05, 0.2})};
  if (seed % 2 == 0)
    spec.fabric.queue_pairs = {one_of<std::uint32_t>(draw, {2, 3, 8}), draw() % 2 == 0};
  return job;
}

// All that time depends on, as text.
std::string times_of(const Result& result) {
  std::string text = testing::ledger_text(result) + testing::network_text(result);
  for (const IterationReport& i : result.iterations)
    text += std::to_string(i.seconds * 1e12) + " " + std::to_string(i.exposed_comm_seconds) + "\n";
  return text;
}

Result play(SmallJob job, int shards, const RunOptions& options = {}) {
  job.spec.run.shards = shards;
  Result result = job.run(nullptr, options);
  EXPECT_EQ(result.interrupted, "") << shards << " shards";
  if (result.verify) {
    EXPECT_EQ(result.verify->wrong_elements, 0u) << shards << " shards";
  }
  return result;
}

void expect_same_hashes(unsigned seed, std::string_view scheme = {}) {
  const testing::RandomJob random = testing::random_job(seed, scheme);
  SCOPED_TRACE("job " + std::to_string(seed) + ": " + testing::name_of(random));
  SmallJob job = virtual_job(seed, random);
  const Result one = play(job, 1);
  for (const int shards : {2, 3}) EXPECT_EQ(result_hash(play(job, shards)), result_hash(one));
  job.spec.run.verify = false;
  // What a packet says decides whether it is lost, with ATP whether its numbers fit, and how large
  // some methods' pieces are.
  const std::string_view scheme_played = job.spec.collectives.algorithm(Func::all_reduce);
  const auto& pieces = job.spec.collectives.at_servers.compression;
  const bool fits = !job.spec.compression || scheme_played != "atp";
  const bool sized = !pieces || !pieces->method->measure;
  if (job.spec.fabric.packets.loss == 0 && fits && sized) {
    EXPECT_EQ(times_of(play(job, 1)), times_of(one)) << "without real data";
  }
  job.spec.fabric.inside_node = InsideNode::model;
  const std::string modelled = result_hash(play(job, 1));
  EXPECT_EQ(result_hash(play(job, 2)), modelled) << "nodes modelled";
  const RunOptions traced{.trace_ranks = {WorldRank(0)}, .max_spans = 1000};
  EXPECT_EQ(result_hash(play(job, 1, traced)), modelled) << "traced";
}

TEST(ResultHash, OfRandomJobsIsTheSameForEveryNumberOfShards) {
  const auto [first, end] = testing::asked_jobs(8);
  ASSERT_GT(end, first);
  for (unsigned seed = first; seed < end && !HasFailure(); ++seed)  // one is enough to look into
    expect_same_hashes(seed);
}

TEST(ResultHash, OfRandomJobsOfEverySchemeIsTheSameForEveryNumberOfShards) {
  const auto [first, end] = testing::asked_jobs(2);
  for (unsigned seed = first; seed < end; ++seed)
    for (const std::string_view scheme : testing::random_schemes())
      if (!HasFailure()) expect_same_hashes(seed, scheme);
}

}  // namespace
}  // namespace ghostrank
