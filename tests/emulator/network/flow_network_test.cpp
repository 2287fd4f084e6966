// Max-min fair rates: closed forms, and random networks that change step by step, against a filling
// from scratch and against the definition of fairness.
#include "emulator/network/flow_network.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/common/dice.h"
#include "emulator/common/few.h"
#include "emulator/network/lowest_level.h"

namespace ghostrank {
namespace {

using Needs = std::vector<FlowNetwork::Need>;

constexpr double kNoCap = 1e12;

// Whether it lies in itself or, as it grows, elsewhere, and back.
TEST(Few, HoldsWhatAVectorWould) {
  checking::Dice dice(2);
  for (int list = 0; list < 50; ++list) {
    Few<int, 3> few;
    std::vector<int> all;
    const std::uint64_t most = 1 + dice.below(12);
    for (int step = 0; step < 200; ++step) {
      if (all.size() < most && (all.empty() || dice.below(2) == 0)) {
        few.push_back(step);
        all.push_back(step);
      } else {
        const std::size_t place = dice.below(all.size());
        few[place] = few.back();
        few.pop_back();
        all[place] = all.back();
        all.pop_back();
      }
      EXPECT_EQ(few.in_place(), all.size() <= 3);
      ASSERT_EQ(std::vector<int>(few.begin(), few.end()), all);
      ASSERT_EQ(few.empty(), all.empty());
    }
  }
}

// It names the first of equal levels, and none when all are gone.
TEST(LowestLevel, IsThatOfAllAfterEveryChange) {
  checking::Dice dice(1);
  LowestLevel levels;
  for (std::size_t count = 1; count < 70; ++count) {
    std::vector<double> all(count);
    levels.begin(count);
    for (std::size_t i = 0; i < count; ++i) {
      all[i] = static_cast<double>(dice.below(8));
      levels.put(i, all[i]);
    }
    levels.build();
    for (int change = 0; change < 100; ++change) {
      const auto lowest = std::min_element(all.begin(), all.end());
      ASSERT_EQ(levels.level(), *lowest);
      if (*lowest < LowestLevel::kNone) {
        ASSERT_EQ(levels.number(), static_cast<std::size_t>(lowest - all.begin()));
      }
      const std::size_t i = dice.below(count);
      all[i] = dice.below(3) == 0 ? LowestLevel::kNone : static_cast<double>(dice.below(8));
      levels.change(i, all[i]);
    }
  }
}

TEST(FlowNetwork, SharesALinkEqually) {
  FlowNetwork net(2);
  const Needs both{{0, 1.0}, {1, 1.0}}, one{{0, 1.0}};
  const auto a = net.add(both, 1000, kNoCap, 0), b = net.add(one, 3000, kNoCap, 0);
  EXPECT_EQ(net.settle(0).size(), 2u);
  EXPECT_DOUBLE_EQ(net.rate(a), 0.5);
  EXPECT_EQ(net.end(a), 2000);
  EXPECT_EQ(net.end(b), 6000);
  net.remove(a);
  ASSERT_EQ(net.settle(2000).size(), 1u);
  EXPECT_DOUBLE_EQ(net.rate(b), 1.0);  // 2000 are left
  EXPECT_EQ(net.end(b), 4000);
}

TEST(FlowNetwork, SharesWhatASlowerLinkGives) {
  FlowNetwork net(1);
  const Needs one{{0, 1.0}};
  const auto a = net.add(one, 1000, 0.4, 0), b = net.add(one, 1000, 0.4, 0);
  net.settle(0);  // not contended
  net.give(0, 0.5);
  EXPECT_TRUE(net.changed());
  EXPECT_EQ(net.settle(1000).size(), 2u);
  EXPECT_DOUBLE_EQ(net.rate(a), 0.25);
  EXPECT_EQ(net.end(b), 1000 + 2400);  // 600 are left
  net.give(0, 1);
  net.settle(2000);
  EXPECT_DOUBLE_EQ(net.rate(a), 0.4);
}

TEST(FlowNetwork, LetsFlowsStandStillWhileALinkGivesNothing) {
  FlowNetwork net(2);
  const Needs both{{0, 1.0}, {1, 1.0}}, other{{1, 1.0}};
  const auto a = net.add(both, 1000, 0.4, 0), b = net.add(other, 1000, 1, 0);
  net.settle(0);
  net.give(0, 0);
  net.settle(1000);
  EXPECT_EQ(net.rate(a), 0);
  EXPECT_EQ(net.end(a), FlowNetwork::kNever);
  EXPECT_DOUBLE_EQ(net.rate(b), 1);
  const auto late = net.add(both, 1000, 0.4, 1100);
  net.settle(1100);
  EXPECT_EQ(net.rate(late), 0);
  net.remove(b);
  net.give(0, 1);
  net.settle(5000);
  EXPECT_DOUBLE_EQ(net.rate(a), 0.4);
  EXPECT_EQ(net.end(a), 5000 + 1500);  // 600 were left
  EXPECT_EQ(net.end(late), 5000 + 2500);
}

// What a link costs its flows is what they take longer than at their caps.
TEST(FlowNetwork, NotesWhatHoldsFlowsBack) {
  FlowNetwork net(2);
  const Needs both{{0, 1.0}, {1, 0.5}}, one{{0, 1.0}}, other{{1, 0.5}};
  const auto a = net.add(both, 1000, 0.8, 0), b = net.add(one, 1000, 0.8, 0);
  net.settle(0);
  const Picoseconds first = net.end(a);
  EXPECT_EQ(first, 2000);
  net.remove(a);
  net.remove(b);
  EXPECT_EQ(net.held_back(0), 2 * (2000 - 1250));  // at their caps they take 1250
  EXPECT_EQ(net.held_back(1), 0);
  const auto c = net.add(both, 1000, 0.8, 2000), d = net.add(other, 4000, 1.5, 2000);
  net.settle(2000);
  EXPECT_DOUBLE_EQ(net.rate(c), 0.8);
  EXPECT_DOUBLE_EQ(net.rate(d), 1.2);
  net.remove(c);
  net.settle(2000 + 1250);
  EXPECT_DOUBLE_EQ(net.rate(d), 1.5);
  net.remove(d);
  EXPECT_EQ(net.held_back(0), 2 * (2000 - 1250));
  EXPECT_EQ(net.held_back(1), 1250 - 1000);  // 0.8 of its cap for so long
  net.clear();
  EXPECT_EQ(net.held_back(1), 0);
}

// The classic case: a long flow over two links, and a flow on each; the second link is twice as
// fast.
TEST(FlowNetwork, GivesWhatOthersCannotUse) {
  FlowNetwork net(2);
  const Needs across{{0, 1.0}, {1, 0.5}}, first{{0, 1.0}}, second{{1, 0.5}};
  const auto a = net.add(across, 1, kNoCap, 0), b = net.add(first, 1, kNoCap, 0),
             c = net.add(second, 1, kNoCap, 0);
  net.settle(0);
  EXPECT_DOUBLE_EQ(net.rate(a), 0.5);
  EXPECT_DOUBLE_EQ(net.rate(b), 0.5);
  EXPECT_DOUBLE_EQ(net.rate(c), 1.5);
}

TEST(FlowNetwork, TakesNoMoreThanTheCap) {
  FlowNetwork net(1);
  const Needs one{{0, 1.0}};
  const auto slow = net.add(one, 1, 0.1, 0), fast = net.add(one, 1, kNoCap, 0);
  net.settle(0);
  EXPECT_DOUBLE_EQ(net.rate(slow), 0.1);
  EXPECT_DOUBLE_EQ(net.rate(fast), 0.9);
  EXPECT_EQ(net.bottleneck(slow), FlowNetwork::kOwnCap);
  EXPECT_EQ(net.bottleneck(fast), 0u);
}

// A ring of four edges, three of which cross one link, is a third as fast there.
TEST(FlowNetwork, AFluidOfManyEdgesHasOneRate) {
  FlowNetwork net(3);
  const Needs ring{{0, 1.0}, {1, 3.0}}, other{{0, 1.0}}, third{{1, 1.0}};
  const auto a = net.add(ring, 1, kNoCap, 0), b = net.add(other, 1, kNoCap, 0),
             c = net.add(third, 1, kNoCap, 0);
  net.settle(0);
  EXPECT_DOUBLE_EQ(net.rate(a), 0.25);
  EXPECT_DOUBLE_EQ(net.rate(b), 0.75);
  EXPECT_DOUBLE_EQ(net.rate(c), 0.25);  // each of the four connections has the same
}

// A flow alone on its resources costs the network one rate, however many others there are.
TEST(FlowNetwork, SolvesOnlyWhatChanges) {
  FlowNetwork net(2000);
  std::vector<Needs> needs;
  for (std::uint32_t i = 0; i < 1000; ++i) needs.push_back({{2 * i, 1.0}, {2 * i + 1, 0.5}});
  for (const Needs& n : needs) net.add(n, 1e6, kNoCap, 0);
  net.settle(0);
  const std::uint64_t before = net.solved();
  const Needs beside{{7, 0.5}};
  const auto late = net.add(beside, 1, kNoCap, 5);
  net.settle(5);
  EXPECT_DOUBLE_EQ(net.rate(late), 1.0);
  EXPECT_LE(net.solved() - before, 4u);
}

// A ring that comes to many full links meets all of their flows at once, not one after the other.
TEST(FlowNetwork, SolvesARingAcrossFullLinksInFewRounds) {
  constexpr std::uint32_t kLinks = 300;
  FlowNetwork net(kLinks);
  std::vector<Needs> needs;
  for (std::uint32_t i = 0; i < kLinks; ++i) needs.push_back({{i, 1.0}});
  for (const Needs& n : needs) net.add(n, 1e6, kNoCap, 0);
  net.settle(0);
  Needs ring;
  for (std::uint32_t i = 0; i < kLinks; ++i) ring.push_back({i, i == 7 ? 2.0 : 1.0});
  const std::uint64_t before = net.solved();
  const auto across = net.add(ring, 1e6, kNoCap, 5);
  EXPECT_EQ(net.settle(5).size(), kLinks + 1);
  EXPECT_DOUBLE_EQ(net.rate(across), 1.0 / 3);
  EXPECT_DOUBLE_EQ(net.rate(7), 1.0 / 3);
  EXPECT_DOUBLE_EQ(net.rate(8), 2.0 / 3);
  EXPECT_LE(net.solved() - before, 3 * kLinks);
}

// Each flow is held back by a link that it shares with the one before it, which is slower: when the
// first one slows down, all of them get other rates, and are solved together.
TEST(FlowNetwork, SolvesAChainOfLinksInFewRounds) {
  constexpr std::uint32_t kLinks = 20;
  FlowNetwork net(kLinks);
  std::vector<Needs> needs;
  for (std::uint32_t i = 0; i < kLinks; ++i) {
    const double own = std::pow(2.5, -static_cast<double>(i));
    needs.push_back({{i, own}});
    if (i + 1 < kLinks) needs.back().push_back({i + 1, own / 2});
  }
  for (const Needs& n : needs) net.add(n, 1e6, kNoCap, 0);
  net.settle(0);
  for (std::uint32_t i = 0; i < kLinks; ++i) ASSERT_EQ(net.bottleneck(i), i);
  const std::uint64_t before = net.solved();
  const Needs first{{0, 1.0}};
  net.add(first, 1e6, kNoCap, 5);
  EXPECT_EQ(net.settle(5).size(), kLinks + 1);
  double left = 0.5;  // of its link, for the flow
  for (std::uint32_t i = 0; i < kLinks; ++i) {
    EXPECT_NEAR(net.rate(i), std::pow(2.5, i) * left, 1e-9 * net.rate(i));
    left = 1 - left / 2;
  }
  EXPECT_LE(net.solved() - before, 3 * kLinks);
}

// Rings that share hundreds of links, and are slower elsewhere, are settled without those links.
TEST(FlowNetwork, LooksOnlyAtLinksThatMayHoldARingBack) {
  constexpr std::uint32_t kLinks = 300, kTrunk = kLinks;
  FlowNetwork net(kLinks + 1);
  Needs ring;
  for (std::uint32_t i = 0; i < kLinks; ++i) ring.push_back({i, 1.0});
  ring.push_back({kTrunk, 10.0});
  std::vector<FlowNetwork::Id> rings;
  for (int i = 0; i < 4; ++i) rings.push_back(net.add(ring, 1e6, 0.5, 0));
  net.settle(0);
  for (const auto id : rings) EXPECT_DOUBLE_EQ(net.rate(id), 0.025);
  const std::uint64_t before = net.looked_at();
  net.remove(rings.back());
  EXPECT_EQ(net.settle(5).size(), 3u);
  EXPECT_DOUBLE_EQ(net.rate(rings[0]), 0.1 / 3);
  EXPECT_LE(net.looked_at() - before, 20u);
  // As transfers take what they can of a link, it holds them back beside the rings.
  const Needs one{{7, 1.0}};
  const auto a = net.add(one, 1e6, 1.0, 9), b = net.add(one, 1e6, 1.0, 9);
  net.settle(9);
  EXPECT_DOUBLE_EQ(net.rate(a), 0.45);  // beside three rings of a thirtieth each
  net.remove(rings[0]);
  net.remove(rings[1]);
  net.settle(20);
  EXPECT_DOUBLE_EQ(net.rate(rings[2]), 0.1);
  EXPECT_DOUBLE_EQ(net.rate(b), 0.45);
  net.give(kTrunk, 0.5);
  net.settle(30);
  EXPECT_DOUBLE_EQ(net.rate(rings[2]), 0.05);
  EXPECT_DOUBLE_EQ(net.rate(b), 0.475);
}

// ---- Random networks ----

struct Network {
  std::vector<Needs> needs;
  std::vector<double> cap;
  std::vector<double> time;                          // that each resource gives
  std::map<std::size_t, FlowNetwork::Id> under_way;  // by index into needs
};

// The rates of all flows by filling from scratch, one level at a time.
std::map<std::size_t, double> filled(const Network& n) {
  const std::size_t resources = n.time.size();
  std::map<std::size_t, double> rate;
  std::vector<double> used(resources);
  std::map<std::size_t, bool> open;
  for (const auto& [i, id] : n.under_way) open[i] = true;
  double level = 0;
  while (!open.empty()) {
    std::vector<double> load(resources);
    for (const auto& [i, o] : open)
      for (const auto& need : n.needs[i]) load[need.resource] += need.ps_per_byte;
    double step = std::numeric_limits<double>::max();
    for (std::size_t r = 0; r < resources; ++r)
      if (load[r] > 0) step = std::min(step, (n.time[r] - used[r]) / load[r]);
    for (const auto& [i, o] : open) step = std::min(step, n.cap[i] - level);
    level += step;
    for (std::size_t r = 0; r < resources; ++r) used[r] += step * load[r];
    std::vector<std::size_t> fixed;
    for (const auto& [i, o] : open) {
      bool full = level >= n.cap[i] * (1 - 1e-12);
      for (const auto& need : n.needs[i])
        full |= used[need.resource] >= n.time[need.resource] * (1 - 1e-12);
      if (full) fixed.push_back(i);
    }
    for (const std::size_t i : fixed) {
      rate[i] = level;
      open.erase(i);
    }
  }
  return rate;
}

// Plays a random network: up to three of its flows come or leave at a time, and every third time
// in half of the networks a resource gives another share of its time, or none. Then all rates are
// fair.
void check_random_network(std::uint64_t seed, Network n, checking::Dice& dice) {
  const std::size_t resources = n.time.size();
  FlowNetwork net(resources);
  for (int step = 0; step < 60; ++step) {
    for (std::uint64_t changes = 1 + dice.below(3); changes > 0; --changes) {
      const std::size_t i = dice.below(n.needs.size());
      if (const auto at = n.under_way.find(i); at != n.under_way.end()) {
        net.remove(at->second);
        n.under_way.erase(at);
      } else {
        n.under_way[i] = net.add(n.needs[i], 1e9, n.cap[i], step);
      }
    }
    if (seed % 2 == 0 && dice.below(3) == 0) {
      const std::size_t r = dice.below(resources);
      n.time[r] = 0.125 * static_cast<double>(seed % 4 == 0 ? dice.below(9) : 1 + dice.below(8));
      net.give(static_cast<std::uint32_t>(r), n.time[r]);
    }
    net.settle(step);
    for (const auto& [i, rate] : filled(n))
      EXPECT_NEAR(net.rate(n.under_way[i]), rate, 1e-7 * rate)
          << "seed " << seed << " step " << step << " flow " << i;
    if (::testing::Test::HasFailure()) break;
  }
}

TEST(FlowNetwork, IsFairAfterEveryChangeOfRandomNetworks) {
  for (std::uint64_t seed = 0; seed < 60 && !HasFailure(); ++seed) {
    checking::Dice dice(seed);
    const std::size_t resources = 1 + dice.below(12);
    Network n;
    n.time.assign(resources, 1);
    for (int i = 0; i < 40; ++i) {
      std::map<std::uint32_t, double> chosen;
      for (std::uint64_t k = 0; k <= dice.below(4); ++k)
        chosen[static_cast<std::uint32_t>(dice.below(resources))] =
            0.25 * static_cast<double>(1 + dice.below(8));
      Needs needs;
      for (const auto& [r, ps] : chosen) needs.push_back({r, ps});
      n.needs.push_back(std::move(needs));
      n.cap.push_back(dice.below(3) == 0 ? 0.05 * static_cast<double>(1 + dice.below(20)) : kNoCap);
    }
    check_random_network(seed, std::move(n), dice);
  }
}

// Rings across many links of leaves and some slower ones between pods, beside transfers over a few
// of them: as they come and leave, their ceilings rise and fall, and links become slack and not.
Network rings_and_transfers(std::uint64_t seed, checking::Dice& dice) {
  const std::size_t leaves = 30 + dice.below(60), trunks = 1 + dice.below(6);
  const double trunk =
      0.25 * static_cast<double>(1 + dice.below(16));  // to a leaf's time for a byte
  Network n;
  n.time.assign(leaves + trunks, 1);
  for (int i = 0; i < 40; ++i) {
    const bool ring = dice.below(2) == 0;
    std::map<std::uint32_t, double> chosen;
    for (std::uint64_t k = ring ? leaves / 2 : 1 + dice.below(2); k > 0; --k)
      chosen[static_cast<std::uint32_t>(dice.below(leaves))] += ring ? 0.5 : 1;
    if (ring || dice.below(4) == 0)
      chosen[static_cast<std::uint32_t>(leaves + dice.below(trunks))] += trunk;
    Needs needs;
    for (const auto& [r, ps] : chosen) needs.push_back({r, ps});
    n.needs.push_back(std::move(needs));
    n.cap.push_back(seed % 3 == 0 ? 1 : 0.1 * static_cast<double>(1 + dice.below(20)));
  }
  return n;
}

TEST(FlowNetwork, IsFairAfterEveryChangeOfRandomRingsAndTransfers) {
  for (std::uint64_t seed = 0; seed < 60 && !HasFailure(); ++seed) {
    checking::Dice dice(seed);
    Network n = rings_and_transfers(seed, dice);
    check_random_network(seed, std::move(n), dice);
  }
}

}  // namespace
}  // namespace ghostrank
