// A job of four hosts when one of them, or the path to it, fails.
#include "tests/network/namespaces.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

namespace ghostrank {
namespace {

using nlohmann::json;
using std::chrono::steady_clock;
using testing::kHosts;
using testing::kPort;
using testing::Lab;
using testing::read_file;
using testing::shell;
using Namespaces = testing::Namespaces;

constexpr char kLongJob[] =
    "model: {kind: layers, name: long, dtype: float32, layers: [{name: a, parameters: [100000], "
    "forward_us: 20000, "
    "backward_us: 20000}], optimizer_us: 500}\n"
    "scale: {dilation: 1}\n"
    "run: {iterations: 2000, warmup: 0, probe_ms: 0, stall_timeout_s: 2}\n";

// Starts the long job and waits until process 0 has written iterations.
std::vector<pid_t> start_long_job(Lab& lab, const std::string& flags = "") {
  const std::string job = lab.write_job(kLongJob);
  std::vector<pid_t> hosts;
  for (int h = 0; h < kHosts; ++h) {
    hosts.push_back(lab.start_host(
        h, kHosts, job + " --allow-unfaithful --json " + lab.file("result.json") + flags));
  }
  for (int i = 0; i < 1000; ++i) {
    const std::string stream = read_file(lab.file("result.json.partial.jsonl"));
    if (std::count(stream.begin(), stream.end(), '\n') >= 5) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return hosts;
}

void expect_partial_result(Lab& lab) {
  const json result = json::parse(read_file(lab.file("result.json")));
  EXPECT_GE(result["iterations"].size(), 3u);
  EXPECT_LT(result["iterations"].size(), 2000u);
  EXPECT_FALSE(result["fidelity"]["faithful"].get<bool>());
  EXPECT_NE(result["interrupted"].get<std::string>(), "");
}

TEST_F(Namespaces, AKilledHostEndsTheRunEverywhereAndWhatWasMeasuredIsKept) {
  const auto hosts = start_long_job(*lab);
  // The process in the namespace is the child itself, because ip and env exec it.
  ASSERT_EQ(kill(hosts[2], SIGKILL), 0);
  const auto began = steady_clock::now();
  for (int h : {0, 1, 3}) {
    EXPECT_EQ(lab->finish(hosts[h], std::chrono::seconds(10)), 1) << lab->output(h);
  }
  EXPECT_LT(steady_clock::now() - began, std::chrono::seconds(5));
  EXPECT_NE(lab->output(1).find("lost"), std::string::npos) << lab->output(1);
  expect_partial_result(*lab);
}

TEST_F(Namespaces, APulledCableEndsTheRunWithinTheStallTimeout) {
  const auto hosts = start_long_job(*lab);
  ASSERT_EQ(shell(lab->in("sw", "ip link set " + Lab::port(3) + " down")), 0);
  const auto began = steady_clock::now();
  EXPECT_EQ(lab->finish(hosts[0], std::chrono::seconds(15)), 1) << lab->output(0);
  EXPECT_LT(steady_clock::now() - began, std::chrono::seconds(10));
  EXPECT_NE(lab->output(0).find("stalled"), std::string::npos) << lab->output(0);
  EXPECT_NE(lab->output(0).find("in allreduce #"), std::string::npos) << lab->output(0);
  EXPECT_NE(lab->output(0).find("on host 3"), std::string::npos) << lab->output(0);
  expect_partial_result(*lab);
}

TEST_F(Namespaces, ACablePulledForTwoSecondsIsReportedAsAStall) {
  const auto hosts = start_long_job(*lab, " -s run.iterations=100 -s run.stall_timeout_s=20");
  ASSERT_EQ(shell(lab->in("sw", "ip link set " + Lab::port(3) + " down")), 0);
  std::this_thread::sleep_for(std::chrono::seconds(2));
  ASSERT_EQ(shell(lab->in("sw", "ip link set " + Lab::port(3) + " up")), 0);
  for (const pid_t pid : hosts) EXPECT_EQ(lab->finish(pid, std::chrono::seconds(40)), 0);
  const json result = json::parse(read_file(lab->file("result.json")));
  EXPECT_EQ(result["iterations"].size(), 100u);
  // TCP may recover connection by connection, which gives one stall or several.
  ASSERT_GE(result["stalls"].size(), 1u);
  EXPECT_GT(result["stalls"][0]["wall_seconds"].get<double>(), 1.5);
  EXPECT_EQ(result["stalls"][0]["iterations"].size(), 1u);
  EXPECT_NE(lab->output(0).find("nothing moved for"), std::string::npos) << lab->output(0);
}

TEST_F(Namespaces, CtrlCStopsEveryHostWithinASecond) {
  const auto hosts = start_long_job(*lab);
  const auto began = steady_clock::now();
  kill(hosts[0], SIGINT);
  EXPECT_EQ(lab->finish(hosts[0], std::chrono::seconds(5)), 130) << lab->output(0);
  for (int h : {1, 2, 3}) EXPECT_NE(lab->finish(hosts[h], std::chrono::seconds(5)), -1);
  EXPECT_LT(steady_clock::now() - began,
            std::chrono::milliseconds(1500));  // a second, and the files
  expect_partial_result(*lab);
}

TEST_F(Namespaces, AMissingPeerIsNamedWithinTheTimeOut) {
  const std::string job = lab->write_job(kLongJob);
  std::vector<pid_t> hosts;
  for (int h : {0, 1, 3}) hosts.push_back(lab->start_host(h, kHosts, job));
  for (pid_t pid : hosts) EXPECT_EQ(lab->finish(pid, std::chrono::seconds(20)), 3);
  EXPECT_NE(lab->output(0).find("waiting at " + Lab::address(0) + ":" + std::to_string(kPort) +
                                " for rank 2 of 4, "),
            std::string::npos)
      << lab->output(0);
  EXPECT_NE(lab->output(0).find(Lab::address(0) + ":" + std::to_string(kPort)), std::string::npos)
      << lab->output(0);
}

TEST_F(Namespaces, APortInUseIsNamed) {
  const std::string job = lab->write_job(kLongJob);
  lab->start_host(0, kHosts, job);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const pid_t second = lab->start(
      lab->in(0, "env RANK=0 WORLD_SIZE=2 MASTER_ADDR=" + Lab::address(0) + " MASTER_PORT=" +
                     std::to_string(kPort) + " " + GHOSTRANK_BINARY + " run " + job),
      "second");
  EXPECT_EQ(lab->finish(second, std::chrono::seconds(10)), 3);
  EXPECT_NE(read_file(lab->file("second")).find(std::to_string(kPort)), std::string::npos)
      << read_file(lab->file("second"));
}

TEST_F(Namespaces, AProviderThatDoesNotExistEndsTheRunWithExitThree) {
  const std::string job = lab->write_job(kLongJob);
  std::vector<pid_t> hosts;
  for (int h = 0; h < kHosts; ++h)
    hosts.push_back(lab->start_host(h, kHosts, job + " -s fabric.provider=infinitesimal"));
  for (pid_t pid : hosts) EXPECT_EQ(lab->finish(pid, std::chrono::seconds(20)), 3);
  EXPECT_NE(lab->output(0).find("infinitesimal"), std::string::npos) << lab->output(0);
}

// A switch drops large frames silently, and the small ones before the start pass.
TEST_F(Namespaces, APathThatDropsLargeFramesIsNamedBeforeTheStart) {
  ASSERT_EQ(shell(lab->in("sw", "ip link set " + Lab::port(1) + " mtu 600")), 0);
  const std::string job = lab->write_job(kLongJob);
  const std::string flags = " -s run.stall_timeout_s=1.5 -s run.probe_ms=100";
  for (const std::string& command :
       {"run " + job + flags, "bench pairs --ranks 2 --fabric ofi" + flags}) {
    const auto began = steady_clock::now();
    std::vector<pid_t> hosts;
    for (int h = 0; h < 2; ++h)
      hosts.push_back(lab->start_process(h, 2, GHOSTRANK_BINARY " " + command));
    for (const pid_t pid : hosts) EXPECT_EQ(lab->finish(pid, std::chrono::seconds(20)), 3);
    EXPECT_LT(steady_clock::now() - began, std::chrono::seconds(8));
    EXPECT_NE(lab->output(0).find("small frames pass, large ones do not: check the MTU of"),
              std::string::npos)
        << lab->output(0);
  }
}

TEST_F(Namespaces, AShapedLinkIsNoFasterThanItsRate) {
  constexpr double kRate = 100e6;
  lab->shape({kRate, 65536});
  const std::string job = lab->write_job(
      "model: {kind: layers, name: one, dtype: float32, layers: [{name: a, parameters: "
      "[2000000]}]}\n"
      "collectives: {allreduce: ring}\n"
      "scale: {dilation: 1}\n"
      "run: {iterations: 2, warmup: 0, probe_ms: 0}\n");
  std::vector<pid_t> hosts;
  for (int h = 0; h < kHosts; ++h)
    hosts.push_back(
        lab->start_host(h, kHosts, job + " --allow-unfaithful --json " + lab->file("result.json")));
  for (const pid_t pid : hosts)
    EXPECT_EQ(lab->finish(pid, std::chrono::seconds(60)), 0) << lab->output(0);
  const json result = json::parse(read_file(lab->file("result.json")));
  // A ring over eight ranks, two per host: the busiest link carries 2 (8-1)/8 of 8 MB.
  const double bytes = 14.0 / 8 * 8e6;
  for (const json& i : result["iterations"]) EXPECT_GT(i["seconds"], 0.95 * bytes * 8 / kRate);
}

}  // namespace
}  // namespace ghostrank
