// Interface counters from a sysfs made for the test, with an RDMA device behind the interface.
#include "emulator/host/counters.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace ghostrank {
namespace {

namespace fs = std::filesystem;

class InterfaceCounters : public ::testing::Test {
 protected:
  InterfaceCounters() {
    std::string name = (fs::temp_directory_path() / "ghostrank-sysfs-XXXXXX").string();
    root = mkdtemp(name.data());
    for (const char* counter : {"tx_bytes", "rx_bytes", "tx_packets", "rx_dropped"})
      set(std::string("class/net/ghost0/statistics/") + counter, 1000);
  }
  ~InterfaceCounters() override { fs::remove_all(root); }

  void set(const std::string& path, std::uint64_t value) const {
    fs::create_directories((fs::path(root) / path).parent_path());
    std::ofstream(fs::path(root) / path) << value << "\n";
  }

  std::string root;
};

using Grown = std::vector<std::pair<std::string, std::uint64_t>>;

TEST_F(InterfaceCounters, AreReportedPerIterationAndInAll) {
  InterfaceLog log({"", "ghost0"}, root);
  log.begin();
  set("class/net/ghost0/statistics/tx_bytes", 1300);
  log.mark();
  set("class/net/ghost0/statistics/tx_bytes", 1700);
  set("class/net/ghost0/statistics/rx_bytes", 1010);
  set("class/net/ghost0/statistics/rx_dropped", 1002);
  log.mark();
  const InterfaceReport report = log.end(Host(3));
  EXPECT_EQ(report.host, Host(3));
  EXPECT_EQ(report.device, "ghost0");
  EXPECT_FALSE(report.loopback);
  EXPECT_EQ(report.tx_bytes, 700u);
  EXPECT_EQ(report.rx_bytes, 10u);
  ASSERT_EQ(report.iterations.size(), 2u);
  EXPECT_EQ(report.iterations[0].tx_bytes, 300u);
  EXPECT_EQ(report.iterations[1].tx_bytes, 400u);
  EXPECT_EQ(report.iterations[0].rx_bytes, 0u);
  EXPECT_EQ(report.counters,
            (Grown{{"rx_bytes", 10}, {"rx_dropped", 2}, {"tx_bytes", 700}, {"tx_packets", 0}}));
}

TEST_F(InterfaceCounters, AreUnknownWhereTheyCannotBeRead) {
  fs::remove(fs::path(root) / "class/net/ghost0/statistics/rx_bytes");
  InterfaceLog log({"", "ghost0"}, root);
  log.begin();
  log.mark();
  const InterfaceReport report = log.end(Host(0));
  EXPECT_EQ(report.tx_bytes, 0u);
  EXPECT_FALSE(report.rx_bytes.has_value());
  EXPECT_FALSE(report.iterations.at(0).rx_bytes.has_value());
}

TEST_F(InterfaceCounters, IncludeThoseOfTheRdmaDeviceBehindTheInterfaceAlone) {
  fs::create_directories(fs::path(root) / "class/infiniband/mlx5_0/device/net/ghost0");
  fs::create_directories(fs::path(root) / "class/infiniband/mlx5_1/device/net/ghost1");
  set("class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", 50);
  set("class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence", 7);
  set("class/infiniband/mlx5_1/ports/1/hw_counters/out_of_sequence", 7);
  InterfaceLog log({"", "ghost0"}, root);
  log.begin();
  set("class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", 90);
  set("class/infiniband/mlx5_1/ports/1/hw_counters/out_of_sequence", 9);
  const InterfaceReport report = log.end(Host(0));
  EXPECT_EQ(report.counters.size(), 5u);  // four that are always listed, and the one that grew
  EXPECT_EQ(report.counters.at(0), (Grown::value_type{"rdma.1.port_xmit_data", 40}));
}

class InterfaceTable : public InterfaceCounters {
 protected:
  void write(std::uint64_t received, std::uint64_t sent) const {
    std::ofstream(file()) << "Inter-|   Receive                   |  Transmit\n"
                             " face |bytes    packets errs drop ... |bytes    packets\n"
                             "    lo: 7 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n"
                             "ghost0:"
                          << received << " 12 1 2 0 0 0 0 " << sent << " 13 3 4 0 0 0 0\n";
  }
  std::string file() const { return root + "/dev"; }
};

TEST_F(InterfaceTable, IsReadAnewEveryTime) {
  write(100, 200);
  NetTable table(file());
  EXPECT_EQ(table.of("ghost0"), (Counters{{"rx_bytes", 100},
                                          {"rx_packets", 12},
                                          {"rx_errors", 1},
                                          {"rx_dropped", 2},
                                          {"tx_bytes", 200},
                                          {"tx_packets", 13},
                                          {"tx_errors", 3},
                                          {"tx_dropped", 4}}));
  write(150, 18'000'000'000'000'000'000u);
  EXPECT_EQ(table.of("ghost0").at("rx_bytes"), 150u);
  EXPECT_EQ(table.of("ghost0").at("tx_bytes"), 18'000'000'000'000'000'000u);
  EXPECT_EQ(table.of("lo").at("tx_bytes"), 7u);
}

TEST_F(InterfaceTable, SaysNothingOfWhatIsNotThere) {
  write(100, 200);
  EXPECT_TRUE(NetTable(file()).of("ghost").empty());
  EXPECT_TRUE(NetTable(file()).of("").empty());
  EXPECT_TRUE(NetTable(root + "/none").of("ghost0").empty());
  EXPECT_EQ(NetTable().of("lo").size(), 8u);  // the kernel's own
}

TEST(CountedInterfaces, OfThisNamespaceAreNamedWithoutOne) {
  EXPECT_EQ(counted_interfaces("", "127.0.0.1"), (std::vector<CountedInterface>{{"", "lo"}}));
}

TEST(InterfacesOf, AnAddressAreThoseThatHaveIt) {
  EXPECT_EQ(interfaces_of("127.0.0.1"), std::vector<std::string>{"lo"});
  EXPECT_GE(interfaces_of("203.0.113.77").size(), 1u);  // no interface has it: all of them
}

}  // namespace
}  // namespace ghostrank
