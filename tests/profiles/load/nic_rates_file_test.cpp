// Rates of NICs in time, as files give them, and how long bytes take at them.
#include <gtest/gtest.h>

#include "profiles/load/files/nic_rates.h"
#include "profiles/load/load.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

ClusterSpec cluster() {
  ClusterSpec spec;
  spec.nodes = 3;
  spec.nics_per_node = 2;
  spec.nic.rate_bps = 8e9;  // a byte takes a nanosecond
  return spec;
}

NicRates rates_in(const std::string& text) { return parse_nic_rates(text, "rates.csv", cluster()); }

std::string refused_rates(const std::string& text) {
  const std::string error = test::error_of([&] { rates_in(text); });
  return error.empty() ? error : error.substr(error.find("rates.csv"));
}

constexpr Picoseconds kNs = kPicosPerNano;

TEST(RateCurve, TakesTheIntegralOfTheRate) {
  const RateCurve curve({{0, 1000}, {100 * kNs, 4000}, {200 * kNs, 500}});
  EXPECT_EQ(curve.duration(0, 0), 0);
  EXPECT_EQ(curve.duration(0, 100), 100 * kNs);  // ends where the rate changes
  EXPECT_EQ(curve.duration(50 * kNs, 60), 90 * kNs);
  EXPECT_EQ(curve.duration(100 * kNs, 10), 40 * kNs);
  EXPECT_EQ(curve.duration(0, 100 + 25 + 20), 210 * kNs);  // over both changes
  EXPECT_EQ(curve.duration(1000 * kNs, 8), 4 * kNs);
  EXPECT_EQ(curve.duration(-5 * kNs, 10), 10 * kNs);
}

TEST(NicRates, OfAFileAreThoseOfItsColumns) {
  const NicRates rates = rates_in(
      "seconds,n1.nic0,rate,n2\n"
      "0,1Gbps,8Gbps,2Gbps\n"
      "# later\n"
      "0.5,500Mbps,4Gbps,2Gbps\n");
  const Picoseconds later = kPicosPerSecond / 2;
  EXPECT_DOUBLE_EQ(rates.of(Nic(2))->ps_per_byte(0), 8000);
  EXPECT_DOUBLE_EQ(rates.of(Nic(2))->ps_per_byte(later), 16000);
  EXPECT_DOUBLE_EQ(rates.of(Nic(3))->ps_per_byte(later - 1), 1000);
  EXPECT_DOUBLE_EQ(rates.of(Nic(3))->ps_per_byte(later), 2000);
  for (const int nic : {4, 5}) EXPECT_DOUBLE_EQ(rates.of(Nic(nic))->ps_per_byte(later), 4000);
  EXPECT_EQ(rates.of(Nic(6)), nullptr);
  EXPECT_EQ(rates.next_change(0), later);
  EXPECT_EQ(rates.next_change(later), NicRates::kNever);
  const NicRates moved = rates.from(later / 2);
  EXPECT_EQ(moved.next_change(0), later / 2);
  EXPECT_DOUBLE_EQ(moved.of(Nic(0))->ps_per_byte(later / 2), 2000);
}

TEST(NicRates, OfNicsThatNoColumnNamesAreConstant) {
  const NicRates rates = rates_in("seconds,n0-1\n0,1Gbps\n");
  EXPECT_NE(rates.of(Nic(3)), nullptr);
  EXPECT_EQ(rates.of(Nic(4)), nullptr);
}

TEST(NicRates, TakeTheTimesFromTheirColumnWhereverItStands) {
  const NicRates rates = rates_in("\xef\xbb\xbfrate,n0,seconds\n1Gbps,2Gbps,0\n4Gbps,5Gbps,1\n");
  ASSERT_NE(rates.of(Nic(0)), nullptr);
  EXPECT_DOUBLE_EQ(rates.of(Nic(0))->ps_per_byte(0), 4000);
  EXPECT_DOUBLE_EQ(rates.of(Nic(4))->ps_per_byte(0), 8000);
  EXPECT_DOUBLE_EQ(rates.of(Nic(4))->ps_per_byte(2 * kPicosPerSecond), 2000);
}

TEST(NicRates, AreRefusedWithTheirPlace) {
  EXPECT_EQ(refused_rates("0,1Gbps\n"), "");  // a file of two columns may lack its head
  EXPECT_EQ(refused_rates("time,rate\n0,1Gbps\n")
                .find("rates.csv:1:1: a file of rates begins with the head seconds,rate"),
            0u);
  EXPECT_EQ(refused_rates("seconds,rate\n").find("rates.csv:1:1: there is no row"), 0u);
  EXPECT_EQ(refused_rates("seconds,rate\n1,1Gbps\n").find("rates.csv:2:1: '1' is no time of a row"),
            0u);
  EXPECT_EQ(refused_rates("seconds,rate\n0,1Gbps\n0,2Gbps\n").find("rates.csv:3:1: '0' is no time"),
            0u);
  EXPECT_EQ(
      refused_rates("seconds,rate\n0,none\n").find("rates.csv:2:1: the row has no rate from 1Kbps"),
      0u);
  EXPECT_EQ(refused_rates("seconds,rate\n0,unlimited\n").find("rates.csv:2:1: the row has no rate"),
            0u);
  EXPECT_EQ(refused_rates("seconds,rate,n0\n0,1Gbps\n").find("rates.csv:2:1: the row has no rate"),
            0u);
  EXPECT_EQ(refused_rates("seconds,rate\n0,1Gbps\n2,9Gbps\n")
                .find("rates.csv:3:1: a rate of 9Gbps for n0.nic0, whose own is 8Gbps; set "
                      "cluster.nic.rate"),
            0u);
  EXPECT_EQ(
      refused_rates("seconds,n3\n0,1Gbps\n")
          .find("rates.csv:1:1: the column 'n3': this cluster has n0 to n2, each with nic0 to "
                "nic1"),
      0u);
  EXPECT_EQ(refused_rates("seconds,n0,n0.nic1\n0,1Gbps,1Gbps\n")
                .find("rates.csv:1:1: two columns name n0.nic1"),
            0u);
  EXPECT_EQ(refused_rates("seconds,rate,rate\n0,1Gbps,2Gbps\n")
                .find("rates.csv:1:1: two columns are named rate"),
            0u);
  EXPECT_EQ(
      refused_rates("seconds,leaf0\n0,1Gbps\n").find("rates.csv:1:1: the column 'leaf0' names no"),
      0u);
}

TEST(NicRates, OfAJobNeedTheirFile) {
  const auto job = [](const std::string& file) {
    return "model: resnet50\ndevice: v100-sxm2\n"
           "cluster: {nodes: 2, gpus_per_node: 1, nics_per_node: 1, nic: {rates: " +
           file + "}}\nfabric: {kind: virtual}\n";
  };
  const std::string error = test::load_error(job("none.csv"));
  EXPECT_NE(error.find("job.yaml:3:70: cluster.nic.rates is 'none.csv'; write the path"),
            std::string::npos)
      << error;
  const test::Folder folder;
  folder.write("rates.csv", "seconds,n1\n0,1Gbps\n");
  const LoadedJob loaded = load_job(folder.write("job.yaml", job("rates.csv")), {});
  const auto& rates = loaded.spec.cluster.nic_rates;
  ASSERT_NE(rates, nullptr);
  EXPECT_EQ(rates->of(Nic(0)), nullptr);
  ASSERT_NE(rates->of(Nic(1)), nullptr);
  EXPECT_DOUBLE_EQ(rates->of(Nic(1))->ps_per_byte(0), 8000);
}

}  // namespace
}  // namespace ghostrank
