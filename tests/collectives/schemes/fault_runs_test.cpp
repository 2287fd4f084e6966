// Random runs of the built-in schemes under random misfortunes of packets: shapes, functions, types
// and faults are drawn from the run's number, and the agent checker plays them with real data.
// GHOSTRANK_FAULT_RUNS=N plays N runs (default 1000), from GHOSTRANK_FAULT_SEED on (default 0).
#include <array>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "collectives/check/agents/checker.h"
#include "collectives/common/dice.h"
#include "collectives/schedule.h"
#include "tests/collectives/schemes/switched.h"
#include "tests/variable.h"

namespace ghostrank {
namespace {

using testing::kFuncsOfSwitches;

constexpr std::array kNames{"switchml",
                            "sharp",
                            "atp",
                            "omnireduce",
                            "omnireduce_switch",
                            "sparse_all_gather",
                            "sparcml",
                            "parameter_server",
                            "byteps",
                            "phub"};
constexpr std::array kMulticast{"orca", "elmo", "unicast"};
constexpr std::array kRates{0.0, 0.0, 0.01, 0.03, 0.1};

struct FaultRun {
  std::string name;
  std::unique_ptr<Ends> ends;
  std::vector<Call> calls;
  AgentCheckOptions options;
};

Communicator some_communicator(checking::Dice& dice, int& ranks) {
  Communicator comm;
  const auto nodes = 1 + dice.below(dice.below(50) == 0 ? 34 : 4), gpus = 1 + dice.below(3);
  const auto nics = 1 + dice.below(gpus);
  ranks = static_cast<int>(nodes * gpus);
  for (std::uint64_t r = 0; r < nodes * gpus; ++r) {
    comm.node_of.push_back(static_cast<std::int32_t>(r / gpus));
    comm.nic_of.push_back(static_cast<std::int32_t>(r / gpus * nics + r % gpus % nics));
  }
  InSwitch& in = comm.in_switch;
  in.slots = static_cast<int>(1 + dice.below(9));
  in.packet_elements = dice.happens(0.5) ? 32 : 64;
  in.timeout_ps = 200'000'000;
  in.memory_slots = static_cast<int>(dice.below(10));
  in.packet_rate = dice.happens(0.3) ? 1e6 : 0;
  in.trees = static_cast<int>(dice.below(2));
  AtServers& servers = comm.at_servers;
  servers.places = static_cast<int>(1 + dice.below(3));
  servers.beside = static_cast<int>(dice.below(static_cast<std::uint64_t>(servers.places) + 1));
  servers.nics = static_cast<int>(1 + dice.below(2));
  servers.cores = static_cast<int>(1 + dice.below(3));
  servers.partition_bytes = 4096;
  servers.chunk_bytes = dice.happens(0.5) ? 64 : 4096;
  servers.big_array = 100;
  servers.hash = static_cast<KeyHash>(dice.below(5));
  servers.bound = dice.happens(0.3);
  servers.schedules = dice.happens(0.5);
  constexpr std::array<std::uint64_t, 3> kCredits{0, 1, 9'000};
  servers.credit_bytes = kCredits[dice.below(kCredits.size())];
  OmniReduceSpec& omni = comm.omnireduce;
  omni.block = static_cast<int>(1 + dice.below(40));
  omni.packets = dice.happens(0.5);
  omni.columns = omni.packets ? 1 : static_cast<int>(1 + dice.below(4));
  omni.slots = static_cast<int>(1 + dice.below(5));
  omni.timeout_ps = 200'000'000;
  return comm;
}

// Leaves of a Clos network, where some have several of the ranks and others none.
Communicator::Switches some_switches(checking::Dice& dice, int ranks) {
  Communicator::Switches at;
  at.pods = static_cast<int>(1 + dice.below(3));
  at.leaves = static_cast<int>(1 + dice.below(4));
  at.spines = static_cast<int>(1 + dice.below(3));
  at.ports = ranks;
  for (int r = 0; r < ranks; ++r) {
    const auto leaf = dice.below(static_cast<std::uint64_t>(at.pods * at.leaves));
    at.leaf_of.push_back(static_cast<std::int32_t>(leaf));
    at.port_of.push_back(r);
  }
  return at;
}

// A drawn sparsity; dense if `ranks` ranks cannot hold tensors of the drawn one.
Sparsity some_sparsity(checking::Dice& dice, int ranks) {
  constexpr std::array kDensities{0.0, 0.02, 0.1, 0.5, 1.0};
  const Sparsity drawn{kDensities[dice.below(kDensities.size())], 1 + dice.below(60),
                       static_cast<Overlap>(dice.below(3))};
  return drawn.refuses(ranks).empty() ? drawn : Sparsity{};
}

FaultRun drawn_run(std::uint64_t seed) {
  checking::Dice dice(seed ^ 0xfa017);
  FaultRun run;
  int ranks = 0;
  Communicator comm = some_communicator(dice, ranks);
  std::string_view scheme = kNames[dice.below(kNames.size())];
  if (scheme == "phub" && dice.happens(0.5)) scheme = "phub_racks";
  Func func = scheme == kNames[0] ? kFuncsOfSwitches[dice.below(kFuncsOfSwitches.size())]
                                  : Func::all_reduce;
  checking::Dice apart(seed ^ 0xca58);  // or all other draws would change
  if (apart.happens(0.2)) {
    scheme = kMulticast[apart.below(kMulticast.size())];
    func = Func::broadcast;
    if (apart.happens(0.7)) comm.switches = some_switches(apart, ranks);
  }
  const Algorithm* row = find_algorithm(kSchemes, func, scheme);
  run.name = std::string(scheme) + " " + std::string(name_of(func)) + " of " +
             std::to_string(ranks) + " ranks";
  try {
    const InSwitch& in = comm.in_switch;
    const auto slots = static_cast<std::uint32_t>(in.slots);
    run.ends =
        scheme != "atp"
            ? row->ends(ranks, comm)
            : atp_ends(ranks,
                       {in.slots, in.memory_slots, in.timeout_ps, in.packet_rate,
                        // Numbers of packets wrap soon.
                        (0xffffffffu / slots - static_cast<std::uint32_t>(seed % 9)) * slots},
                       comm);
  } catch (const std::invalid_argument&) {
    return run;  // more workers than the scheme serves
  }
  // Schemes without packets, such as servers of keys, get larger tensors, for several pieces.
  const std::uint64_t most = run.ends->survives().loss ? 150 : 5'000;
  Call call{
      0, {func, ranks, dice.below(most), 4, 0}, static_cast<DataType>(dice.below(kDataTypes))};
  call.collective.element_bytes = bytes_of(call.type);
  if (!run.ends->refuses(call).empty()) call.type = DataType::int32;
  run.calls = calls_like(call.collective, call.type, static_cast<int>(1 + dice.below(3)));
  const Sparsity sparsity = reduces(func) ? some_sparsity(dice, ranks) : Sparsity{};
  for (Call& one : run.calls) {
    one.sparsity = sparsity;
    if (!run.ends->refuses(one).empty()) one.sparsity = {};
  }
  AgentCheckOptions& o = run.options;
  o.seed = seed;
  o.misfortunes = {kRates[dice.below(5)], kRates[dice.below(5)], kRates[dice.below(5)],
                   kRates[dice.below(5)]};
  o.no_room = dice.happens(0.3) ? 0.1 : 0;
  o.slow = dice.happens(0.3) ? 0.1 : 0;
  o.pause = dice.happens(0.5) ? 1'000'000'000 : 0;
  o.overlap = static_cast<int>(1 + dice.below(3));
  o.most_events = 20'000'000;
  if (dice.happens(0.3)) o.switches = {.failure = 0.02 / ranks, .away = 1'000'000'000};
  return run;
}

TEST(FaultRuns, OfEverySchemeEndWithRightSums) {
  const std::uint64_t first = test::number_in("GHOSTRANK_FAULT_SEED", 0);
  const std::uint64_t runs = test::number_in("GHOSTRANK_FAULT_RUNS", 1000);
  std::uint64_t packets = 0, lost = 0, played = 0;
  std::set<std::string> schemes;
  double expected = 0;
  for (std::uint64_t seed = first; seed < first + runs; ++seed) {
    const FaultRun run = drawn_run(seed);
    if (!run.ends) continue;
    const AgentReport report = check(*run.ends, run.calls, run.options);
    ASSERT_TRUE(report.ok) << "run " << seed << ", " << run.name << ": " << report.error;
    packets += report.packets;
    lost += report.lost;
    if (run.ends->survives().loss)
      expected += run.options.misfortunes.loss * static_cast<double>(report.packets);
    schemes.insert(run.name.substr(0, run.name.find(' ')));
    ++played;
  }
  RecordProperty("packets", std::to_string(packets));
  if (runs < 1000) return;                                           // too few for what follows
  EXPECT_EQ(schemes.size(), kNames.size() + 1 + kMulticast.size());  // and phub_racks
  EXPECT_GT(played, runs * 9 / 10);
  EXPECT_NEAR(static_cast<double>(lost), expected, 0.1 * expected);
  EXPECT_GT(lost, 1000u);
}

// If ATP's server answered a resent packet to all workers, not to the one that resends, the copies
// would delay answers behind a slow switch, and the waiting workers would resend without end.
TEST(FaultRuns, OfManyWorkersAtASlowSwitchEndSoon) {
  const FaultRun run = drawn_run(10'024'926);
  ASSERT_EQ(run.name, "atp allreduce of 87 ranks");
  AgentCheckOptions options = run.options;
  options.most_events = 1'000'000;
  const AgentReport report = check(*run.ends, run.calls, options);
  EXPECT_TRUE(report.ok) << report.error;
}

}  // namespace
}  // namespace ghostrank
