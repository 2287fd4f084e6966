#include "tools/compare/comparison.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ghostrank {
namespace {

StoredResult stored(const std::string& file, double step) {
  StoredResult r;
  r.file = file;
  r.job = "job";
  r.fabric = "memory";
  r.step_median = step;
  r.wire_bytes = 4096;
  r.faithful = true;
  r.pairs_known = true;
  r.pairs = {{{"n0.nic0", "n1.nic0"}, {2048, 6}}, {{"n1.nic0", "n0.nic0"}, {2048, 6}}};
  return r;
}

TEST(Comparison, FindsLedgersEqualPairByPair) {
  EXPECT_EQ(compare_ledgers(stored("a", 1), stored("b", 2)).outcome, Ledgers::same);
}

TEST(Comparison, CountsPairsThatDifferOrAreMissing) {
  StoredResult other = stored("b", 1);
  other.pairs.begin()->second.second = 7;        // other number of messages
  other.pairs[{"n5.nic0", "n6.nic0"}] = {1, 1};  // only here
  const LedgerComparison comparison = compare_ledgers(stored("a", 1), other);
  EXPECT_EQ(comparison.outcome, Ledgers::different);
  EXPECT_EQ(comparison.pairs_different, 2u);
}

TEST(Comparison, KnowsNothingOfLedgersThatWereNotKept) {
  StoredResult other = stored("b", 1);
  other.pairs_known = false;
  EXPECT_EQ(compare_ledgers(stored("a", 1), other).outcome, Ledgers::unknown);
  other.pairs.clear();
  const std::string text = comparison_text({other, stored("a", 1)}, Paint{});
  EXPECT_EQ(text.find("0 pairs"), std::string::npos) << text;
}

TEST(Comparison, GivesRatiosToTheFirstResult) {
  const auto j = nlohmann::json::parse(comparison_json({stored("a", 0.5), stored("b", 0.75)}));
  EXPECT_EQ(j["results"][0]["ratio_to_first"]["step_seconds"], 1);
  EXPECT_EQ(j["results"][1]["ratio_to_first"]["step_seconds"], 1.5);
  EXPECT_EQ(j["results"][1]["values"]["step_seconds"], 0.75);
  EXPECT_TRUE(j["results"][1]["values"]["compute_seconds"].is_null());
  EXPECT_EQ(j["results"][1]["pairs_same_as_first"], true);
}

TEST(Comparison, ShowsWhyAResultIsNotToBeTrusted) {
  StoredResult other = stored("dir/b.json", 1);
  other.faithful = false;
  other.reason = "loop busy 95 %";
  const std::string text = comparison_text({stored("dir/a.json", 1), other}, Paint{});
  EXPECT_NE(text.find("NOT faithful"), std::string::npos);
  EXPECT_NE(text.find("b.json: loop busy 95 %\n"), std::string::npos);
}

}  // namespace
}  // namespace ghostrank
