// Numbers of different things do not mix, and cost what integers cost.
#include "collectives/common/number.h"

#include <concepts>
#include <sstream>
#include <type_traits>
#include <unordered_set>

#include <gtest/gtest.h>

namespace ghostrank {
namespace {

template <class From, class... To>
constexpr bool becomes_none_of = (!std::convertible_to<From, To> && ...);

static_assert(becomes_none_of<WorldRank, GroupRank, Nic, Host, Node>);
static_assert(becomes_none_of<WorldParty, WorldRank, GroupParty, Nic, Host, Node>);
static_assert(becomes_none_of<Nic, WorldRank, WorldParty, GroupRank, Host, Node>);
static_assert(becomes_none_of<Host, WorldRank, WorldParty, GroupRank, Nic, Node>);
static_assert(becomes_none_of<Node, WorldRank, WorldParty, GroupRank, Nic, Host>);
static_assert(becomes_none_of<GroupRank, WorldRank, WorldParty, Nic, Host, Node>);
static_assert(std::convertible_to<WorldRank, WorldParty>);  // every rank is a party

static_assert(!std::constructible_from<WorldRank, WorldParty>);
static_assert(!std::constructible_from<Nic, Node>);
static_assert(!std::equality_comparable_with<WorldRank, Nic>);

static_assert(sizeof(Nic) == sizeof(std::int32_t) && std::is_trivially_copyable_v<Nic>);

TEST(Numbers, CountAndHaveDifferences) {
  Nic nic(3);
  EXPECT_EQ(++nic, Nic(4));
  EXPECT_EQ(nic + 2, Nic(6));
  EXPECT_EQ(nic - 2, Nic(2));
  EXPECT_EQ(Nic(9) - nic, 5);
  EXPECT_LT(nic, Nic(5));
  EXPECT_EQ(WorldParty(WorldRank(7)), WorldParty(7));
}

TEST(Numbers, AreWrittenAndHashedAsTheirValue) {
  std::ostringstream text;
  text << WorldRank(12) << ' ' << to_string(Host(3));
  EXPECT_EQ(text.str(), "12 3");
  EXPECT_EQ((std::unordered_set<Nic>{Nic(1), Nic(2), Nic(1)}).size(), 2u);
}

TEST(VectorBy, HasARowForEachNumber) {
  VectorBy<Host, int> ranks(3, 5);
  ranks[Host(1)] = 7;
  EXPECT_EQ(ranks.push_back(9), Host(3));
  int sum = 0;
  for (const Host host : ranks.keys()) sum += ranks[host];
  EXPECT_EQ(sum, 5 + 7 + 5 + 9);
  EXPECT_EQ(ranks.rows(), (std::vector<int>{5, 7, 5, 9}));
  VectorBy<Node, bool> seen(2);
  seen[Node(1)] = true;
  EXPECT_FALSE(seen[Node(0)]);
  EXPECT_TRUE(seen[Node(1)]);
}

}  // namespace
}  // namespace ghostrank
