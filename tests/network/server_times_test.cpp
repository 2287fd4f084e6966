// Times of schemes with servers against their closed forms, as processes on hosts of their own over
// libfabric: BPS-3, PHB-3 and OMN-2 as real rows. NICs are paced by the engine, slowly enough for a
// machine of two cores. A machine that is too busy to play in time says so, and its times may be
// wrong; one that is disturbed gets other tries.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "collectives/schemes/keyed/keys.h"
#include "tests/lab/lab.h"

namespace ghostrank {
namespace {

using nlohmann::json;
using testing::Lab;
using testing::read_file;

constexpr int kMostHosts = 8;
constexpr double kRate = 400e6;  // bits per second, of every NIC
constexpr double kOff = 0.05;    // that a real time may be off

// One tensor, which all workers reduce in one call; a worker and its NIC a node.
std::string job_of(std::uint64_t elements) {
  return "model: {kind: layers, name: one, dtype: float32, layers: [{name: a, parameters: [" +
         std::to_string(elements) +
         "], forward_us: 500, backward_us: 500}], optimizer_us: 100}\n"
         "servers: {nic: {rate: 400Mbps, latency_us: 5}, add_GBps: 0, memory_GBps: 0}\n"
         "scale: {dilation: 4}\n"
         "run: {iterations: 1, warmup: 1, probe_ms: 0}\n";
}

class ServerTimes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Lab::possible()) GTEST_SKIP() << "needs root and network namespaces";
    lab = std::make_unique<Lab>(kMostHosts);
  }

  // Plays the job on so many hosts, 4 of them workers.
  json play(int hosts, const std::string& job, const std::string& flags) {
    std::vector<pid_t> started;
    for (int h = 0; h < hosts; ++h)
      started.push_back(lab->start_host(h, hosts, command(job, flags, "result.json")));
    for (int h = 0; h < hosts; ++h)
      EXPECT_EQ(lab->finish(started[static_cast<std::size_t>(h)], std::chrono::seconds(60)), 0)
          << lab->output(h);
    const json result = json::parse(read_file(lab->file("result.json")));
    faithful = faithful && result["fidelity"]["faithful"].get<bool>();
    return result;
  }
  json modelled(const std::string& job, const std::string& flags) {
    const pid_t alone =
        lab->start(std::string(GHOSTRANK_BINARY) + " run " +
                       command(job, flags + " -s fabric.kind=virtual", "virtual.json"),
                   "virtual");
    EXPECT_EQ(lab->finish(alone, std::chrono::seconds(60)), 0) << read_file(lab->file("virtual"));
    return json::parse(read_file(lab->file("virtual.json")));
  }
  static double seconds_of_call(const json& result) {
    return result["collectives"][0]["seconds_median"];
  }

  // A row: an exchange and what its formula says, in units of S / B.
  struct Row {
    std::string name;
    int hosts;
    std::string flags;
    double formula;
  };
  // Each row's call takes the time of its formula, in one of three tries.
  void expect_times(std::uint64_t elements, const std::vector<Row>& rows) {
    const std::string job = lab->write_job(job_of(elements));
    const double unit = static_cast<double>(elements) * 4 * 8 / kRate;
    for (const Row& row : rows) {
      SCOPED_TRACE(row.name);
      const double in_model = seconds_of_call(modelled(job, row.flags)) / unit;
      EXPECT_NEAR(in_model / row.formula, 1, 0.02);
      double best = 1;
      for (int attempt = 0; attempt < 3 && best > kOff; ++attempt) {
        const double real = seconds_of_call(play(row.hosts, job, row.flags)) / unit;
        std::printf("%s: %.3f S / B, in virtual time %.3f, by formula %.3f\n", row.name.c_str(),
                    real, in_model, row.formula);
        best = std::min(best, std::abs(real / row.formula - 1));
      }
      if (best > kOff && !faithful) GTEST_SKIP() << "the machine is too busy: off by " << best;
      EXPECT_LE(best, kOff);
    }
  }

  std::unique_ptr<Lab> lab;
  bool faithful = true;  // every run

 private:
  std::string command(const std::string& job, const std::string& flags,
                      const std::string& result) const {
    return job + " -s cluster.gpus_per_node=1 -s cluster.nics_per_node=1 -s " +
           "cluster.nic.rate=400Mbps " + flags + " --allow-unfaithful --json " + lab->file(result);
  }
};

// BPS-3 for n = 4 and k = 0, 2: with a server beside each worker alone, and with two more on hosts
// of their own. 200 partitions a worker, as in the tests in virtual time: 4 of them are 0.5 % of M.
TEST_F(ServerTimes, OfBytePsAreTheShareThatItsTheoremSays) {
  const std::string job = lab->write_job(job_of(1'638'400));
  const auto flags = [](int k) {
    return "-s servers.placement=mixed -s servers.count=" + std::to_string(k) +
           " -s parallel.framework=byteps -s parallel.mode=bound -s parallel.partition_bytes=8192 "
           "-s parallel.launch=after_backward";
  };
  const auto step = [](const json& result) { return result["step_time"]["median"].get<double>(); };
  const double alone = step(modelled(job, flags(0))), helped = step(modelled(job, flags(2)));
  const double share = best_time(6, 4, 4) / best_time(4, 4, 4);
  std::string times;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const double real_alone = step(play(4, job, flags(0)));
    const double real_helped = step(play(6, job, flags(2)));
    times = "k = 0: " + std::to_string(real_alone) + " s, in virtual time " +
            std::to_string(alone) + " s; k = 2: " + std::to_string(real_helped) +
            " s, in virtual time " + std::to_string(helped) + " s";
    const auto near = [](double a, double b) { return std::abs(a / b - 1) <= kOff; };
    if (near(real_alone, alone) && near(real_helped, helped) &&
        near(real_helped / real_alone, share))
      return;
  }
  if (!faithful) GTEST_SKIP() << "the machine is too busy: " << times;
  FAIL() << times;
}

const std::string kPhub = "-s parallel.framework=phub -s parallel.partition_bytes=8192 ";

// PHB-3: a box of k NICs for 4 workers takes max(1, 4 / k).
TEST_F(ServerTimes, OfPhubAreThoseOfItsBusiestNic) {
  std::vector<Row> rows;
  for (const int k : {1, 2, 4}) {
    const std::string nics = std::to_string(k);
    rows.push_back({nics + " NICs", 5,
                    kPhub + "-s scale.dilation=2 -s servers.count=1 -s servers.nics=" + nics +
                        " -s cluster.nics_per_node=" + nics,
                    std::max(1.0, 4.0 / k)});
  }
  expect_times(819'200, rows);
}

// PHB-3: the box of each of two racks sends 2 (r - 1) / r S to the other rack, which its kernel
// counts on an interface that carries nothing else. Its other NIC serves two workers.
TEST_F(ServerTimes, OfPhubsRacksAreThoseOfTheBusiestNicAndTheKernelCountsWhatCrosses) {
  constexpr std::uint64_t kElements = 819'200;
  constexpr int kHosts = 6;
  lab->add_rail();
  std::string hosts = "hosts: [";
  for (int h = 0; h < kHosts; ++h)
    hosts += std::string(h > 0 ? ", " : "") + "{name: " + Lab::address(h) +
             ", nics: [{device: eth0}, {device: eth1}]}";
  const std::string job = lab->write_job(job_of(kElements) + hosts + "]\n");
  const std::string flags =
      kPhub +
      "-s fabric.flows=nic -s collectives.allreduce=phub_racks -s servers.count=2 "
      "-s servers.nics=2 -s parallel.rack_nics=1 -s cluster.nics_per_node=2";
  const double unit = static_cast<double>(kElements) * 4 * 8 / kRate;
  constexpr double kFormula = 2;
  double took = 0;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const json result = play(kHosts, job, flags);
    took = seconds_of_call(result) / unit;
    int boxes = 0;  // a worker's second interface carries nothing and is not listed
    for (const json& i : result["interfaces"]) {
      if (i["device"] != "eth1") continue;
      ++boxes;
      EXPECT_GE(i["host"].get<int>(), 4);
      const double crosses = 4.0 * kElements;
      EXPECT_GE(i["tx_bytes"].get<double>(), crosses);
      EXPECT_LT(i["tx_bytes"].get<double>(), 1.05 * crosses + 1e5);
    }
    EXPECT_EQ(boxes, 2);
    if (std::abs(took / kFormula - 1) <= kOff) return;
  }
  if (!faithful) GTEST_SKIP() << "the machine is too busy: " << took << " S / B";
  EXPECT_NEAR(took / kFormula, 1, kOff);
}

// OMN-2: max(d, u) with aggregators of their own, (d + u) (n - 1) / n beside the workers. Slots are
// few, because every one of them sends a first block even if it is zero.
TEST_F(ServerTimes, OfOmniReduceAreThoseOfTheLargerDensity) {
  constexpr double kDensity = 0.4;
  const double u = 1 - std::pow(1 - kDensity, 4);
  const std::string common =
      "-s scale.dilation=2 -s collectives.allreduce=omnireduce -s omnireduce.slots=8 "
      "-s servers.count=4 "
      "-s tensors.density=0.4 -s parallel.launch=after_backward -s servers.placement=";
  expect_times(3'276'800, {{"dedicated", 8, common + "dedicated", std::max(kDensity, u)},
                           {"colocated", 4, common + "colocated", (kDensity + u) * 3 / 4}});
}

}  // namespace
}  // namespace ghostrank
