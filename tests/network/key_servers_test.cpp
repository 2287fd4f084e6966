// Servers that hold keys as processes of their own, on hosts of their own: four workers and two
// servers over libfabric, on a host each.
#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/lab/lab.h"

namespace ghostrank {
namespace {

using nlohmann::json;
using testing::Lab;
using testing::read_file;

constexpr int kProcesses = 6;

class ServerHosts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Lab::possible()) GTEST_SKIP() << "needs root and network namespaces";
    lab = std::make_unique<Lab>(kProcesses);
  }

  std::vector<pid_t> start(const std::string& flags) {
    const std::string job = lab->write_job(
        "model: {kind: layers, name: small, dtype: float32, layers: [{name: a, parameters: "
        "[300000, 1000], forward_us: 500, backward_us: 500}], optimizer_us: 100}\n"
        "servers: {count: 2, nic: {rate: 10Gbps, latency_us: 5}}\n"
        "scale: {dilation: 20}\n"
        "run: {iterations: 3, warmup: 1, probe_ms: 0, stall_timeout_s: 10}\n");
    std::vector<pid_t> hosts;
    for (int h = 0; h < kProcesses; ++h)
      hosts.push_back(lab->start_host(
          h, kProcesses, job + " --allow-unfaithful --json " + lab->file("result.json") + flags));
    return hosts;
  }

  std::unique_ptr<Lab> lab;
};

TEST_F(ServerHosts, SumRealDataAndHearWhatVirtualTimeSays) {
  for (const std::string flags :
       {"parallel.framework=byteps -s parallel.partition_bytes=65536",
        "parallel.framework=byteps -s parallel.partition_bytes=65536 "
        "-s compression.method=dithering",
        "parallel.framework=phub", "parallel.framework=phub -s collectives.allreduce=phub_racks",
        "collectives.allreduce=parameter_server"}) {
    SCOPED_TRACE(flags);
    for (const pid_t pid : start(" -s run.verify=true -s " + flags))
      EXPECT_EQ(lab->finish(pid, std::chrono::seconds(60)), 0) << lab->output(0);
    const json real = json::parse(read_file(lab->file("result.json")));
    EXPECT_GT(real["verify"]["checked_elements"].get<double>(), 0);
    EXPECT_EQ(real["verify"]["wrong_elements"].get<int>(), 0);
    ASSERT_GT(real["servers"].size(), 0U);  // a parameter server's only key is on one of the two
    const pid_t alone = lab->start(std::string(GHOSTRANK_BINARY) + " run " + lab->file("job.yaml") +
                                       " -s fabric.kind=virtual -s run.verify=true -s " + flags +
                                       " --json " + lab->file("virtual.json"),
                                   "virtual");
    EXPECT_EQ(lab->finish(alone, std::chrono::seconds(60)), 0) << read_file(lab->file("virtual"));
    const json modelled = json::parse(read_file(lab->file("virtual.json")));
    ASSERT_EQ(real["servers"].size(), modelled["servers"].size());
    for (std::size_t s = 0; s < real["servers"].size(); ++s)
      for (const char* key : {"name", "rx_bytes", "tx_bytes", "memory_bytes"})
        EXPECT_EQ(real["servers"][s][key], modelled["servers"][s][key]) << key;
    EXPECT_EQ(real["traffic"]["pairs"], modelled["traffic"]["pairs"]);
  }
}

TEST_F(ServerHosts, ADeadServerEndsTheJobAndIsNamed) {
  const std::vector<pid_t> hosts =
      start(" -s run.iterations=100000 -s parallel.framework=byteps -s scale.dilation=1");
  for (int i = 0; i < 1000; ++i) {
    if (read_file(lab->file("result.json.partial.jsonl")).size() > 2000) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_EQ(kill(hosts[5], SIGKILL), 0);  // plays the second server alone
  for (int h = 0; h < 5; ++h)
    EXPECT_EQ(lab->finish(hosts[h], std::chrono::seconds(15)), 1) << lab->output(h);
  EXPECT_NE(lab->output(0).find("host 5 ("), std::string::npos) << lab->output(0);
  EXPECT_NE(lab->output(0).find(") was lost: "), std::string::npos) << lab->output(0);
}

}  // namespace
}  // namespace ghostrank
