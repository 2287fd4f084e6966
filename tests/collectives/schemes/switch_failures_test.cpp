// SwitchML and OmniReduce whose switches fail: random plays, 95 % of them with real data, in which
// switches restart, stay away for a while or for good, while packets are lost, doubled, delayed and
// overtaken. GHOSTRANK_FAULT_RUNS=N plays N runs (default 1000), from GHOSTRANK_FAULT_SEED on
// (default 0).
#include <array>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "collectives/check/agents/checker.h"
#include "collectives/common/dice.h"
#include "collectives/schemes/omnireduce.h"
#include "collectives/schemes/switchml.h"
#include "tests/collectives/schemes/switched.h"
#include "tests/variable.h"

namespace ghostrank {
namespace {

using testing::kFuncsOfSwitches;
using testing::on_nics;

constexpr Picoseconds kMillisecond = 1'000'000'000;
constexpr Picoseconds kTimeout = kMillisecond / 5;

struct Play {
  std::string name;
  std::unique_ptr<Ends> ends;
  std::vector<Call> calls;
  AgentCheckOptions options;
};

Play drawn_play(std::uint64_t seed) {
  checking::Dice dice(seed ^ 0x5e17c4fa);
  // Most plays have few nodes and few rounds per slot, because faults meet the rarest moments as
  // often there as in long plays. 34 nodes have two levels of switches.
  constexpr std::array kNodes{2, 4, 8, 16, 32, 2, 4, 8, 34};
  const bool is_long = dice.happens(0.05);
  const int nodes =
      is_long ? kNodes[dice.below(kNodes.size())] : static_cast<int>(2 + dice.below(3));
  const int gpus = nodes > 8 ? 1 : static_cast<int>(1 + dice.below(2));
  const int ranks = nodes * gpus;
  const bool gone = dice.happens(0.3);
  SwitchMlOptions options{.slots = static_cast<int>(1 + dice.below(9)),
                          .elements = 32,
                          .timeout = kTimeout,
                          .fallback = gone || dice.happens(0.5) ? 5 * kMillisecond : 0};
  const bool sparse = nodes <= 32 && dice.happens(0.3);
  Play run;
  run.ends = sparse ? omnireduce_ends(ranks, {.in_switch = true,
                                              .packets = true,
                                              .block = 32,
                                              .columns = 1,
                                              .slots = options.slots,
                                              .timeout = options.timeout,
                                              .fallback = options.fallback})
                    : switchml_ends(ranks, options, on_nics(nodes, gpus));
  const Func func =
      sparse ? Func::all_reduce : kFuncsOfSwitches[dice.below(kFuncsOfSwitches.size())];
  const std::uint64_t count = dice.below(!is_long ? 200 : nodes > 8 ? 500 : 1'500);
  constexpr std::array kTypes{DataType::int32, DataType::float32, DataType::bfloat16};
  const DataType type = sparse ? DataType::int32 : kTypes[dice.below(kTypes.size())];
  run.calls =
      calls_like({func, ranks, func == Func::all_reduce ? count : count / 4, bytes_of(type), 0},
                 type, static_cast<int>(1 + dice.below(4)));
  for (Call& call : run.calls)
    if (sparse) call.sparsity = {dice.happens(0.5) ? 1 : 0.2, 32, Overlap::random};
  run.name = (sparse ? "sparse " : "") + std::string(name_of(func)) + " of " +
             std::to_string(ranks) + " ranks on " + std::to_string(nodes) + " nodes, " +
             std::string(name_of(type));
  AgentCheckOptions& o = run.options;
  o.seed = seed;
  constexpr std::array kRates{0.0, 0.001, 0.01, 0.05};
  const auto rate = [&] { return dice.happens(0.5) ? kRates[dice.below(kRates.size())] : 0; };
  o.misfortunes = {rate(), rate(), rate(), rate()};
  const auto notes = static_cast<double>(nodes) * (is_long ? 20 : 5);
  o.switches.failure = dice.happens(0.7) ? 1 / (notes * static_cast<double>(1 + dice.below(5))) : 0;
  o.switches.away = dice.happens(0.5) ? 4 * kMillisecond : 0;
  o.switches.gone = gone ? 1 + dice.below(static_cast<std::uint64_t>(notes) * 2) : 0;
  o.no_room = dice.happens(0.2) ? 0.1 : 0;
  o.slow = dice.happens(0.2) ? 0.05 : 0;
  o.pause = dice.happens(0.3) ? 5 * kMillisecond : 0;
  o.overlap = static_cast<int>(1 + dice.below(3));
  o.real_data = !dice.happens(0.05);
  o.most_events = 50'000'000;
  return run;
}

// Claims to survive faults that the scheme does not survive.
class Bold final : public Ends {
 public:
  explicit Bold(std::unique_ptr<Ends> ends) : Ends(ends->size()), ends_(std::move(ends)) {}
  std::vector<Helper> helpers() const override { return ends_->helpers(); }
  std::unique_ptr<Agent> agent(GroupParty party) const override { return ends_->agent(party); }
  std::vector<Edge> traffic(const Call& call) const override { return ends_->traffic(call); }
  std::uint64_t overhead_bytes() const override { return ends_->overhead_bytes(); }
  Survives survives() const override { return {.loss = true, .duplicates = true, .restart = true}; }

 private:
  std::unique_ptr<Ends> ends_;
};

// Without the guard's packet numbers there are no agreements: workers wait for ever for sums that
// the switch has forgotten, or take wrong ones. With the guard the same plays are right.
TEST(SwitchFailures, LeaveWrongSumsAndIdleWorkersWhereNobodyAgrees) {
  int idle = 0, wrong = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const auto calls = calls_like({Func::all_reduce, 4, 700, 4, 0}, DataType::int32, 2);
    const AgentCheckOptions options{.seed = seed,
                                    .misfortunes = {.loss = 0.02, .duplicates = 0.02},
                                    .switches = {.failure = 0.02},
                                    .most_events = 20'000};
    const SwitchMlOptions with{.slots = 4, .elements = 32, .timeout = kTimeout};
    SwitchMlOptions without = with;
    without.guard = false;
    const AgentReport right = check(*switchml_ends(4, with), calls, options);
    EXPECT_TRUE(right.ok) << right.error;
    const AgentReport bare = check(Bold(switchml_ends(4, without)), calls, options);
    idle += bare.error.find("still busy") != std::string::npos;
    wrong += bare.error.find("wrong content") != std::string::npos;
  }
  EXPECT_GT(idle, 10);
  EXPECT_GT(wrong, 0);
}

TEST(SwitchFailures, OfEveryKindLeaveRightSums) {
  const std::uint64_t first = test::number_in("GHOSTRANK_FAULT_SEED", 0);
  const std::uint64_t runs = test::number_in("GHOSTRANK_FAULT_RUNS", 1000);
  AgentReport all;
  for (std::uint64_t seed = first; seed < first + runs; ++seed) {
    const Play run = drawn_play(seed);
    const AgentReport report = check(*run.ends, run.calls, run.options);
    ASSERT_TRUE(report.ok) << "run " << seed << ", " << run.name << ": " << report.error;
    all.packets += report.packets;
    all.failures += report.failures;
    all.unheard += report.unheard;
    all.restarts += report.restarts;
    all.fallbacks += report.fallbacks;
    all.ring_calls += report.ring_calls;
  }
  for (const auto& [name, value] :
       {std::pair{"packets", all.packets}, std::pair{"failures", all.failures},
        std::pair{"unheard", all.unheard}, std::pair{"restarts", all.restarts},
        std::pair{"fallbacks", all.fallbacks}, std::pair{"ring_calls", all.ring_calls}})
    RecordProperty(name, std::to_string(value));
  if (runs < 1000) return;  // too few for what follows
  EXPECT_GT(all.failures, runs);
  EXPECT_GT(all.restarts, runs / 10);
  EXPECT_GT(all.fallbacks, runs / 10);
  EXPECT_GT(all.ring_calls, all.fallbacks);
}

}  // namespace
}  // namespace ghostrank
