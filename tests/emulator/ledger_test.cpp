// Counting: the ledger of pairs of NICs, which may spill to a file, and histograms.
#include "emulator/traffic/ledger.h"

#include <cstdio>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "emulator/result/histogram.h"
#include "profiles/error.h"

namespace ghostrank {
namespace {

TEST(Ledger, SpillsPartialSumsWhenItOutgrowsItsBound) {
  const std::string path = ::testing::TempDir() + "ghostrank_spill.csv";
  std::remove(path.c_str());
  Ledger ledger(4, path);
  for (int round = 0; round < 3; ++round) {
    for (int nic = 0; nic < 5; ++nic) ledger.add({Nic(nic), Nic(nic + 1), 0}, {100, 1});
  }
  const std::vector<LedgerRow> rest = ledger.rows();
  EXPECT_TRUE(ledger.spilled());
  std::uint64_t bytes = 0, messages = 0;
  for (const auto& [key, cell] : rest) bytes += cell.bytes, messages += cell.messages;
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(line, "source_nic,target_nic,row,bytes,messages");
  while (std::getline(in, line)) {
    unsigned long long b = 0, m = 0;
    ASSERT_EQ(std::sscanf(line.c_str(), "%*d,%*d,%*d,%llu,%llu", &b, &m), 2);
    bytes += b, messages += m;
  }
  EXPECT_EQ(bytes, 1500u);
  EXPECT_EQ(messages, 15u);
  std::remove(path.c_str());
}

// /dev/full accepts writes and fails when they are flushed.
TEST(Ledger, CountsOnWhenItsFileCannotBeWrittenAndSaysSoOnce) {
  Ledger ledger(4, "/dev/full");
  int thrown = 0;
  for (int round = 0; round < 30; ++round) {
    for (int nic = 0; nic < 5; ++nic) {
      try {
        ledger.add({Nic(nic), Nic(nic + 1), 0}, {100, 1});
      } catch (const Error& error) {
        ++thrown;
        EXPECT_NE(std::string(error.what()).find("/dev/full: No space left on device"),
                  std::string::npos)
            << error.what();
      }
    }
  }
  EXPECT_EQ(thrown, 1);
  EXPECT_NE(ledger.failure(), "");
  const std::vector<LedgerRow> rest = ledger.rows();
  VectorBy<Nic, NicCount> nics = ledger.spilled_by_nic();
  for (const LedgerRow& row : rest) count_at_nics(row, nics);
  LedgerCell sent;
  for (const NicCount& nic : nics) sent += nic.sent;
  EXPECT_EQ(sent.bytes, 15'000u);
  EXPECT_EQ(sent.messages, 150u);
  EXPECT_EQ(nics.back().received.messages, 30u);
}

TEST(Ledger, CountsEachKeyApartHoweverManyThereAre) {
  Ledger ledger;
  constexpr int kNics = 300;
  for (int round = 0; round < 2; ++round)
    for (int nic = 0; nic < kNics; ++nic)
      for (std::uint16_t row = 0; row < 3; ++row)
        ledger.add({Nic(nic), Nic(nic ^ 1), row}, {static_cast<std::uint64_t>(nic), 1});
  const std::vector<LedgerRow> rows = ledger.rows();
  EXPECT_EQ(rows.size(), 3u * kNics);
  for (const auto& [key, count] : rows) {
    EXPECT_EQ(key.target_nic, Nic(key.source_nic.value() ^ 1));
    EXPECT_EQ(count.bytes, 2u * key.source_nic.index());
    EXPECT_EQ(count.messages, 2u);
  }
  ledger.clear();
  EXPECT_TRUE(ledger.rows().empty());
}

TEST(Histogram, QuantilesAreWithinThreePercent) {
  Histogram h;
  for (std::uint64_t v = 1; v <= 100'000; ++v) h.add(v);
  for (double q : {0.01, 0.5, 0.9, 0.99}) {
    const double exact = q * 100'000;
    EXPECT_NEAR(static_cast<double>(h.quantile(q)), exact, 0.032 * exact + 1);
  }
  EXPECT_EQ(h.max(), 100'000u);
  h.add(~0ULL);
  EXPECT_EQ(h.max(), ~0ULL);
}

TEST(Histogram, KeepsItsQuantilesBeyondFourBillionSamples) {
  Histogram h;
  h.add(100);
  for (int doublings = 0; doublings < 33; ++doublings) h.merge(Histogram(h));
  h.add(1'000'000);
  EXPECT_EQ(h.count(), (1ULL << 33) + 1);
  EXPECT_EQ(h.quantile(0.5), 100u);
  EXPECT_EQ(h.quantile(0.999), 100u);
}

}  // namespace
}  // namespace ghostrank
