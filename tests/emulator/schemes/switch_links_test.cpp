// Copies of a switch's packets on the links of random fabrics: they take those that the plan says.
#include <map>
#include <random>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "collectives/routing.h"
#include "tests/emulator/schemes/scale.h"
#include "tests/emulator/support.h"
#include "tests/one_of.h"

namespace ghostrank {
namespace {

using test::one_of;
using testing::SmallJob;

using Carried = std::map<std::string, std::pair<double, double>>;  // bytes, messages

// By tier, and by link of those that are among the busiest.
Carried carried(const NetworkReport& report) {
  Carried all;
  for (const LinkTier& tier : report.tiers) all[tier.name] = {tier.bytes, tier.messages};
  for (const LinkLoad& link : report.hottest) all[link.link] = {link.bytes, link.messages};
  return all;
}

// In the second iteration: in the first, communicators ask for trees (sharp).
Carried carried_in_second(SmallJob job) {
  Carried of_both[2];
  for (int more = 0; more < 2; ++more) {
    job.spec.run.iterations = 1 + more;
    const Result result = job.run();
    EXPECT_EQ(result.interrupted, "");
    if (result.network) of_both[more] = carried(*result.network);
  }
  Carried second;
  for (const auto& [name, mean] : of_both[1]) {
    const auto first = of_both[0].find(name);
    if (first != of_both[0].end())
      second[name] = {2 * mean.first - first->second.first, 2 * mean.second - first->second.second};
  }
  return second;
}

// A random fabric whose routing gives a connection one path.
TopologySpec random_fabric(std::mt19937& random) {
  using Kind = TopologySpec::Kind;
  TopologySpec spec;
  spec.kind = one_of(random, {Kind::leaf_spine, Kind::rail_optimised, Kind::fat_tree, Kind::torus,
                              Kind::torus, Kind::dragonfly, Kind::dragonfly});
  spec.leaves = spec.kind == Kind::torus || spec.kind == Kind::dragonfly ? 0 : 4;
  spec.spines = one_of(random, {1, 2, 3});
  if (spec.kind == Kind::fat_tree) spec.pods = 2, spec.cores = 2 * spec.spines;
  if (spec.kind == Kind::torus)
    spec.dimensions = {one_of(random, {2, 3, 4}), one_of(random, {2, 3})};
  do {
    spec.routing = &routings()[random() % routings().size()];
  } while (spec.routing->per != Routing::Per::connection);
  return spec;
}

// Elements for one and credits for the others, or the other way around; on one level or two.
TEST(SwitchLinks, OfRandomFabricsCarryWhatThePlanSays) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    const std::string scheme =
        one_of<const char*>(random, {"switchml", "switchml", "sharp", "atp"});
    SmallJob job(one_of(random, {4, 9, 16, scheme == "atp" ? 16 : 70}), one_of(random, {1, 2}),
                 FabricKind::virtual_time);
    JobSpec& spec = job.spec;
    for (const Func func :
         {Func::all_reduce, Func::reduce_scatter, Func::all_gather, Func::broadcast, Func::reduce})
      if (func == Func::all_reduce || scheme == "switchml")
        spec.collectives.algorithm(func) = scheme;
    spec.cluster.nic = {testing::kSwitchedNicRate, 2 * kPicosPerMicro};
    spec.cluster.topology = random_fabric(random);
    spec.cluster.topology.placement =
        one_of(random, {TopologySpec::Placement::packed, TopologySpec::Placement::random});
    spec.cluster.servers.count = 1;
    spec.cluster.servers.nic = spec.cluster.nic;
    spec.collectives.in_switch.packet_elements = 64;
    spec.run.seed = seed;
    for (int calls = 0; calls < 3; ++calls) {
      const Func func = scheme == "switchml"
                            ? one_of(random, {Func::all_reduce, Func::reduce_scatter,
                                              Func::all_gather, Func::broadcast, Func::reduce})
                            : Func::all_reduce;
      job.collective(func, one_of<std::uint64_t>(random, {1, 300, 5'000}),
                     one_of(random, {DataType::int32, DataType::float32}),
                     func == Func::broadcast || func == Func::reduce ? 2 : 0);
    }
    SCOPED_TRACE("job " + std::to_string(seed) + ": " + scheme + ", " +
                 std::to_string(spec.cluster.nodes) + " x " +
                 std::to_string(spec.cluster.gpus_per_node) + ", kind " +
                 std::to_string(static_cast<int>(spec.cluster.topology.kind)) + ", " +
                 std::string(spec.cluster.topology.routing->name));
    const TrafficPlan plan = plan_traffic(spec, job.workload);
    ASSERT_TRUE(plan.network);
    const Carried played = carried_in_second(job), planned = carried(*plan.network);
    std::size_t compared = 0;
    for (const auto& [name, sums] : planned) {
      const auto at = played.find(name);
      if (at == played.end()) continue;
      ++compared;
      EXPECT_EQ(at->second, sums) << name;
    }
    EXPECT_GE(compared, plan.network->tiers.size() + (plan.network->hottest.size() + 1) / 2);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace ghostrank
