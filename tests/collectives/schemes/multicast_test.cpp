// Multicast schemes: labels that reach every member once, headers, and agents proved.
#include "collectives/schemes/multicast.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

#include "collectives/check/agents/checker.h"
#include "collectives/common/dice.h"
#include "collectives/schemes/multicast/elmo_header.h"
#include "collectives/schemes/multicast/orca_label.h"
#include "tests/collectives/schemes/switched.h"

namespace ghostrank {
namespace {

using multicast::Clos;
using multicast::elmo_header;
using multicast::OrcaTree;
using multicast::Rack;
using testing::on_nics;

constexpr Clos kTwoPods{.pods = 2, .leaves = 24, .spines = 24, .cores = 24, .ports = 24};
constexpr MulticastOptions kFewRuns{.elements = 32, .outstanding = 3};
constexpr Multicast kEveryMulticast[]{Multicast::orca, Multicast::elmo, Multicast::unicast};

// Where a packet with this rack label leaves the leaf, by the bytes of the label alone.
std::vector<int> ports_of(const std::vector<std::uint8_t>& label) {
  std::vector<int> ports;
  for (std::size_t bit = 0; bit < 8 * (label.size() - 1); ++bit)
    if ((label[1 + bit / 8] >> (7 - bit % 8) & 1) != 0) ports.push_back(static_cast<int>(bit));
  return ports;
}

// Members of random groups get one copy each, the root and all others none, though half of the
// labels' filters match links that lead to no member.
TEST(OrcaLabels, ReachEveryMemberOnceAndNobodyElse) {
  checking::Dice dice(1);
  int with_mistakes = 0;
  for (int group = 0; group < 1000; ++group) {
    std::map<int, std::set<int>> members;  // by leaf: ports
    const std::uint64_t leaves = 1 + dice.below(group % 2 == 0 ? 6 : 40);
    const std::uint64_t servers = leaves + dice.below(100);
    std::vector<int> at;
    for (std::uint64_t i = 0; i < leaves; ++i) at.push_back(static_cast<int>(dice.below(48)));
    for (std::uint64_t i = 0; i < servers; ++i)
      members[at[dice.below(at.size())]].insert(static_cast<int>(dice.below(24)));
    const int source = at[dice.below(at.size())];
    std::set<int> no_root = members[source];
    if (!no_root.empty()) members[source].erase(*no_root.begin());
    std::vector<int> to;
    for (const auto& [leaf, ports] : members)
      if (!ports.empty()) to.push_back(leaf);

    const OrcaTree tree = multicast::orca_tree(kTwoPods, source, to, source);
    std::map<std::pair<int, int>, int> copies, wanted;
    for (const int leaf : multicast::reached(kTwoPods, source, tree.label, tree.suppressed)) {
      std::vector<std::uint8_t> label(multicast::rack_label_bytes(kTwoPods));
      const std::set<int>& below = members[leaf];  // what the rack's agent knows of the session
      multicast::encode_rack_label(kTwoPods, {below.begin(), below.end()}, label.data());
      ASSERT_FALSE(below.empty()) << "group " << group << ": leaf " << leaf << " has no member";
      for (const int port : ports_of(label)) ++copies[{leaf, port}];
    }
    for (const auto& [leaf, ports] : members)
      for (const int port : ports) wanted[{leaf, port}] = 1;
    ASSERT_EQ(copies, wanted) << "group " << group;

    const std::size_t without =
        multicast::reached(kTwoPods, source, tree.label, multicast::SessionState(2)).size();
    std::size_t suppressed = 0;
    for (const std::vector<int>& links : tree.suppressed) suppressed += links.size();
    ASSERT_EQ(without, to.size() + suppressed) << "group " << group;
    with_mistakes += suppressed > 0;
  }
  EXPECT_GT(with_mistakes, 200);
  EXPECT_LT(with_mistakes, 800);
}

// Two leaves, one of which has the other's bits of the filter.
TEST(OrcaLabels, SpinesSuppressLinksThatCollide) {
  int collisions = 0;
  for (int member = 0; member < 48; ++member)
    for (int other = 0; other < 48; ++other) {
      const std::uint32_t bits = multicast::bloom_of(other);
      if (member == other || (multicast::bloom_of(member) & bits) != bits) continue;
      // From the other pod, so that both pods' spines see the packet, and from another link there,
      // or the label had it in common.
      const int source = (member + 25) % 24 + (member < 24 ? 24 : 0);
      if (other == source) continue;
      ++collisions;
      const OrcaTree tree = multicast::orca_tree(kTwoPods, source, {member}, 0);
      EXPECT_EQ(multicast::reached(kTwoPods, source, tree.label, tree.suppressed),
                std::vector{member});
      const std::vector<int> without =
          multicast::reached(kTwoPods, source, tree.label, multicast::SessionState(2));
      EXPECT_EQ(std::ranges::count(without, other), 1) << member << " and " << other;
    }
  EXPECT_GT(collisions, 10);
}

// Known answers of CRC-16/ARC and CRC-32 of two bytes, modulo 32.
TEST(OrcaLabels, FilterHasTheBitsOfTwoHashes) {
  const auto bits = [](int a, int b) { return std::uint32_t{1} << a | std::uint32_t{1} << b; };
  EXPECT_EQ(multicast::bloom_of(0), bits(0, 31));
  EXPECT_EQ(multicast::bloom_of(1), bits(1, 9));
  EXPECT_EQ(multicast::bloom_of(24), bits(0, 9));
  EXPECT_EQ(multicast::bloom_of(0x1234), bits(13, 25));
}

TEST(OrcaLabels, HaveOneSizeForEveryGroup) {
  EXPECT_EQ(multicast::tree_label_bytes(kTwoPods), 1u + 19);
  EXPECT_EQ(multicast::rack_label_bytes(kTwoPods), 1u + 3);
  EXPECT_EQ(multicast::tree_label_bytes({1, 2, 1, 1, 4}), 1u + 19);
  EXPECT_EQ(multicast::tree_label_bytes({1, 100, 24, 1, 32}), 1u + 29) << "more leaves at a spine";
}

TEST(ElmoHeaders, GrowWithTheRacksUntilSwitchesHoldTheRest) {
  const Clos clos{.pods = 48, .leaves = 24, .spines = 24, .cores = 24, .ports = 24};
  EXPECT_EQ(elmo_header(clos, 0, {{0, {1}}}).bytes, (1u + 24 + 24 + 2 + 7) / 8);
  std::uint64_t before = 0;
  std::vector<Rack> racks;
  for (int i = 0; i < 40; ++i) {
    racks.push_back({1 + i, {i % 24, i / 24}});  // no two alike
    const multicast::ElmoHeader header = elmo_header(clos, 0, racks);
    EXPECT_GT(header.bytes, before);
    EXPECT_EQ(header.s_rules, 0);
    before = header.bytes;
  }
  std::vector<Rack> alike;
  for (int i = 0; i < 40; ++i) alike.push_back({1 + i, {3, 5}});
  EXPECT_LT(elmo_header(clos, 0, alike).bytes, before) << "leaves that copy alike share a rule";
  for (int i = 40; i < 800; ++i) racks.push_back({1 + i, {i % 24, i / 24 % 24}});
  const multicast::ElmoHeader full = elmo_header(clos, 0, racks);
  EXPECT_LE(full.bytes, multicast::kMostElmoHeader);
  EXPECT_GT(full.s_rules, 0);
}

// Ranks on the leaves of a fat tree: node i on leaf i * step, modulo their number.
Communicator in_fat_tree(int nodes, int gpus, int step) {
  Communicator comm = on_nics(nodes, gpus);
  Communicator::Switches& at = comm.switches;
  at = {.leaf_of = {}, .port_of = {}, .pods = 3, .leaves = 4, .spines = 2, .cores = 2, .ports = 40};
  for (int r = 0; r < nodes * gpus; ++r) {
    at.leaf_of.push_back(r / gpus * step % 12);
    at.port_of.push_back(r % 40);
  }
  return comm;
}

TEST(Multicast, EveryRankHasTheRootsElements) {
  for (const Multicast scheme : kEveryMulticast)
    for (const auto& [nodes, gpus, step] :
         {std::tuple(1, 3, 0), std::tuple(2, 1, 0), std::tuple(5, 2, 0), std::tuple(30, 1, 0),
          std::tuple(6, 2, 1), std::tuple(13, 1, 5)})
      for (const std::uint64_t count : {0, 1, 65, 3'000}) {
        const auto ends =
            multicast_ends(scheme, nodes * gpus, kFewRuns,
                           step == 0 ? on_nics(nodes, gpus) : in_fat_tree(nodes, gpus, step));
        const AgentProof proof =
            prove(*ends, {Func::broadcast, nodes * gpus, count, 4, 0}, nodes < 30 ? 24 : 6);
        ASSERT_TRUE(proof.report.ok)
            << name_of(scheme) << ", " << nodes << " x " << gpus << ", step " << step << ", count "
            << count << ": " << proof.report.error;
        EXPECT_EQ(proof.refused, "");
      }
}

// What leaves the root's NIC in a call: of the copies with one number one.
std::uint64_t sent_by_root(const Ends& ends, std::uint64_t count) {
  std::map<std::uint32_t, std::uint64_t> by_number;
  const Call call{0, {Func::broadcast, ends.size(), count, 4, 0}, DataType::float32};
  for (const Ends::Edge& edge : ends.traffic(call))
    if (edge.from == 0) by_number[edge.copies] = std::max(by_number[edge.copies], edge.bytes);
  std::uint64_t sum = 0;
  for (const auto& [number, bytes] : by_number) sum += bytes;
  return sum;
}

TEST(Multicast, OrcasRootSendsATensorAndItsHeadersForAnyNumberOfReceivers) {
  constexpr std::uint64_t kInAll = 100, kBytes = kInAll * 32 * 4;
  std::uint64_t elmo_before = 0;
  for (const int nodes : {2, 3, 5, 24, 40, 200}) {
    const auto sent = [&](Multicast scheme) {
      return sent_by_root(*multicast_ends(scheme, nodes, kFewRuns), kInAll * 32);
    };
    EXPECT_EQ(sent(Multicast::orca), kBytes + kInAll * 20) << nodes;
    EXPECT_EQ(sent(Multicast::unicast), static_cast<std::uint64_t>(nodes - 1) * kBytes) << nodes;
    const std::uint64_t elmo = sent(Multicast::elmo);
    EXPECT_GE(elmo, elmo_before) << nodes;
    if (nodes == 200) {
      EXPECT_GT(elmo, elmo_before);
    }
    elmo_before = elmo;
  }
}

// A run of more packets has a label for each of them, and is not cut otherwise.
TEST(Multicast, LongCallsHaveLongRuns) {
  const auto ends = multicast_ends(Multicast::orca, 3, {});
  for (const auto& [packets, run] :
       {std::pair<std::uint64_t, std::uint64_t>{1'000, 1}, {10'240, 10}, {1'000'000, 32}}) {
    const Call call{0, {Func::broadcast, 3, packets * 256, 4, 0}, DataType::float32};
    const Ends::Edge root = ends->traffic(call).front();
    EXPECT_EQ(root.from, 0);
    EXPECT_EQ(root.messages, (packets + run - 1) / run);
    EXPECT_EQ(root.bytes, packets * (1024 + 20));
  }
}

TEST(Multicast, RefusesWhatItCannotServe) {
  Communicator comm = in_fat_tree(4, 1, 1);
  comm.switches.regular = false;
  EXPECT_THROW(multicast_ends(Multicast::orca, 4, {}, comm), std::invalid_argument);
  EXPECT_THROW(multicast_ends(Multicast::elmo, 4, {}, comm), std::invalid_argument);
  EXPECT_NO_THROW(multicast_ends(Multicast::unicast, 4, {}, comm));
  const auto ends = multicast_ends(Multicast::orca, 2, {});
  EXPECT_NE(ends->refuses({0, {Func::all_gather, 2, 1, 4, 0}, DataType::int32}), "");
}

}  // namespace
}  // namespace ghostrank
