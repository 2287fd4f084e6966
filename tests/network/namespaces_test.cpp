// Four hosts, each a network namespace with a veth into a bridge that has a namespace of its own:
// nothing of the machine's own network is touched, and everything is removed at the end.
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <signal.h>
#include <sstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/network/pcap.h"

namespace ghostrank {
namespace {

using nlohmann::json;
using std::chrono::steady_clock;

constexpr int kHosts = 4;
constexpr int kPort = 29500;

int shell(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str());
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

class Lab {
 public:
  Lab() : directory_(::testing::TempDir() + "ghostrank_lab_" + std::to_string(getpid())) {
    std::filesystem::create_directories(directory_);
    must("ip netns add " + space("sw"));
    must(in("sw", "ip link add br0 type bridge"));
    must(in("sw", "ip link set br0 up"));
    for (int h = 0; h < kHosts; ++h) {
      must("ip netns add " + space(h));
      must("ip -n " + space(h) + " link add eth0 type veth peer name port" + std::to_string(h) +
           " netns " + space("sw"));
      must(in(h, "ip addr add " + address(h) + "/24 dev eth0"));
      must(in(h, "ip link set eth0 up"));
      must(in(h, "ip link set lo up"));
      must(in("sw", "ip link set " + port(h) + " master br0 up"));
    }
  }
  ~Lab() {
    for (pid_t pid : children_) kill(pid, SIGKILL), waitpid(pid, nullptr, 0);
    for (int h = 0; h < kHosts; ++h) shell("ip netns del " + space(h));
    shell("ip netns del " + space("sw"));
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  Lab(const Lab&) = delete;
  Lab& operator=(const Lab&) = delete;

  static bool possible() {
    return geteuid() == 0 && shell("ip netns add ghostrank-probe") == 0 &&
           shell("ip netns del ghostrank-probe") == 0;
  }

  template <typename Name>
  std::string in(const Name& where, const std::string& command) const {
    return "ip netns exec " + space(where) + " " + command;
  }
  static std::string address(int host) { return "10.77.0." + std::to_string(host + 1); }
  static std::string port(int host) { return "port" + std::to_string(host); }
  std::string file(const std::string& name) const { return directory_ + "/" + name; }

  pid_t start(const std::string& command, const std::string& output) {
    const pid_t pid = fork();
    if (pid == 0) {
      setpgid(0, 0);
      execl("/bin/sh", "sh", "-c", ("exec " + command + " >" + file(output) + " 2>&1").c_str(),
            nullptr);
      _exit(127);
    }
    children_.insert(pid);
    return pid;
  }

  pid_t start_host(int host, int size, const std::string& arguments) {
    return start(
        in(host, "env RANK=" + std::to_string(host) + " WORLD_SIZE=" + std::to_string(size) +
                     " MASTER_ADDR=" + address(0) + " MASTER_PORT=" + std::to_string(kPort) +
                     " GHOSTRANK_TIMEOUT_S=10 " + GHOSTRANK_BINARY + " run " + arguments),
        "host" + std::to_string(host));
  }

  // Exit status, 128 + n for signal n, -1 when it did not end in time.
  int finish(pid_t pid, std::chrono::seconds limit) {
    const auto deadline = steady_clock::now() + limit;
    for (int status = 0; steady_clock::now() < deadline;
         std::this_thread::sleep_for(std::chrono::milliseconds(5))) {
      if (waitpid(pid, &status, WNOHANG) != pid) continue;
      children_.erase(pid);
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    return -1;
  }

  std::string output(int host) const { return read_file(file("host" + std::to_string(host))); }

  std::string write_job(const std::string& rest) const {
    std::ofstream out(file("job.yaml"));
    out << "schema: ghostrank/job/1\n"
           "cluster: {nodes: 4, gpus_per_node: 2, nics_per_node: 2, nic: {rate: 10Gbps, "
           "latency_us: 5}}\n"
           "fabric: {kind: ofi, provider: net}\n"
        << rest;
    return file("job.yaml");
  }

 private:
  std::string space(const std::string& name) const {
    return "ghostrank-" + std::to_string(getpid()) + "-" + name;
  }
  std::string space(int host) const { return space("h" + std::to_string(host)); }
  static void must(const std::string& command) {
    if (shell(command) != 0) throw std::runtime_error("failed: " + command);
  }

  std::string directory_;
  std::set<pid_t> children_;
};

class Namespaces : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Lab::possible()) GTEST_SKIP() << "needs root and network namespaces";
    lab = std::make_unique<Lab>();
  }
  std::unique_ptr<Lab> lab;
};

constexpr char kShortJob[] =
    "model: {kind: layers, name: four, dtype: float32, layers: [{name: a, parameters: [3000000, "
    "64], forward_us: 2000, "
    "backward_us: 4000}, {name: b, parameters: [1000000], forward_us: 2000, backward_us: 4000}], "
    "optimizer_us: 500}\n"
    "parallel: {framework: ddp, bucket_cap_mb: 4}\n"
    "scale: {dilation: 20}\n"
    "run: {iterations: 3, warmup: 0, probe_ms: 0}\n";
constexpr char kLongJob[] =
    "model: {kind: layers, name: long, dtype: float32, layers: [{name: a, parameters: [100000], "
    "forward_us: 20000, "
    "backward_us: 20000}], optimizer_us: 500}\n"
    "scale: {dilation: 1}\n"
    "run: {iterations: 2000, warmup: 0, probe_ms: 0, stall_timeout_s: 2}\n";

// Payload bytes and messages per ordered pair of hosts, all measured iterations together. Host h
// plays node h.
struct Sent {
  double bytes = 0, messages = 0;
};
std::map<std::pair<int, int>, Sent> sent_by_host(const json& result) {
  std::map<std::pair<int, int>, Sent> sent;
  const auto iterations = static_cast<double>(result["iterations"].size());
  const auto node = [](const std::string& nic) { return std::stoi(nic.substr(1)); };  // "n3.nic0"
  for (const json& pair : result["traffic"]["pairs"]) {
    Sent& s = sent[{node(pair["src"]), node(pair["dst"])}];
    s.bytes += pair["bytes"].get<double>() * iterations;
    s.messages += pair["messages"].get<double>() * iterations;
  }
  return sent;
}

using HostPair = std::pair<int, int>;

struct Captured {
  std::map<HostPair, double> bytes;  // TCP payload of the data path, by ordered pair of hosts
  bool complete = true;              // false: the capture itself lost packets
  json result;
};

// tcpdump drops what it has not read yet when it is told to end: wait until its file rests.
void wait_until_written(const std::string& path) {
  std::uintmax_t size = 0;
  for (int same = 0, i = 0; same < 10 && i < 300; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const std::uintmax_t now = std::filesystem::file_size(path);
    same = now == size ? same + 1 : 0;
    size = now;
  }
}

// Plays the job on four hosts while every host's port is captured.
Captured play_and_capture(Lab& lab, const std::string& job) {
  std::vector<pid_t> captures;
  const auto log = [](int h) { return "tcpdump" + std::to_string(h); };
  const auto pcap = [&](int h) { return lab.file("pcap" + std::to_string(h)); };
  for (int h = 0; h < kHosts; ++h) {
    captures.push_back(
        lab.start(lab.in("sw", "tcpdump -Z root -i " + Lab::port(h) + " -s 96 -B 65536 -w " +
                                   pcap(h) + " tcp and src host " + Lab::address(h)),
                  log(h)));
  }
  for (int h = 0; h < kHosts; ++h) {
    const auto listening = [&] {
      return read_file(lab.file(log(h))).find("listening on") != std::string::npos;
    };
    for (int i = 0; i < 500 && !listening(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  std::vector<pid_t> hosts;
  for (int h = 0; h < kHosts; ++h) {
    hosts.push_back(
        lab.start_host(h, kHosts, job + " --allow-unfaithful --json " + lab.file("result.json")));
  }
  for (int h = kHosts - 1; h >= 0; --h) {
    const pid_t pid = hosts[static_cast<std::size_t>(h)];
    EXPECT_EQ(lab.finish(pid, std::chrono::seconds(60)), 0) << lab.output(h);
  }
  for (int h = 0; h < kHosts; ++h) wait_until_written(pcap(h));
  Captured captured;
  for (int h = 0; h < kHosts; ++h) {
    kill(captures[static_cast<std::size_t>(h)], SIGINT);
    lab.finish(captures[static_cast<std::size_t>(h)], std::chrono::seconds(5));
    captured.complete &=
        read_file(lab.file(log(h))).find("\n0 packets dropped by kernel") != std::string::npos;
    for (const auto& [flow, bytes] : testing::tcp_payload(pcap(h))) {
      if (flow.source_port == kPort || flow.target_port == kPort) continue;  // the control plane
      const int target = std::stoi(flow.target.substr(flow.target.rfind('.') + 1)) - 1;
      captured.bytes[{h, target}] += static_cast<double>(bytes);
    }
  }
  captured.result = json::parse(read_file(lab.file("result.json")));
  return captured;
}

void expect_capture_matches_ledger(Lab& lab, const std::string& collectives) {
  const std::string job = lab.write_job(std::string(kShortJob) + collectives);
  Captured captured = play_and_capture(lab, job);
  for (int again = 0; !captured.complete && again < 3; ++again) {
    captured = play_and_capture(lab, job);  // a loaded machine drops captured packets
  }
  if (!captured.complete)
    GTEST_SKIP() << "tcpdump lost packets four times: the machine is too busy";
  ASSERT_EQ(captured.result["iterations"].size(), 3u);
  const auto sent = sent_by_host(captured.result);
  ASSERT_FALSE(sent.empty());
  // Each message carries our 64-byte header and the provider's own, the same for all; opening a
  // connection costs a few bytes more.
  constexpr double kOurHeader = 64, kConnection = 512;
  double most = 0, provider_header = -1;
  for (const auto& [pair, s] : sent) {
    if (s.messages <= most) continue;
    most = s.messages;
    provider_header = std::floor((captured.bytes[pair] - s.bytes) / s.messages) - kOurHeader;
  }
  EXPECT_GE(most, 90);
  EXPECT_GE(provider_header, 0);
  EXPECT_LE(provider_header, 48);
  for (const auto& [pair, s] : sent) {
    EXPECT_NEAR(captured.bytes[pair], s.bytes + s.messages * (kOurHeader + provider_header),
                kConnection)
        << pair.first << ">" << pair.second << ": " << s.messages << " messages";
  }
  for (const auto& [pair, bytes] : captured.bytes) {
    if (sent.contains(pair)) continue;
    EXPECT_LE(bytes, kConnection) << "unaccounted: " << pair.first << ">" << pair.second;
  }
}

TEST_F(Namespaces, ACaptureSeesTheLedgersBytesOfARing) {
  expect_capture_matches_ledger(*lab, "collectives: {allreduce: ring}\n");
}

TEST_F(Namespaces, ACaptureSeesTheLedgersBytesOfRecursiveDoubling) {
  expect_capture_matches_ledger(*lab,
                                "collectives: {allreduce: recursive_doubling, slice: 1MiB}\n");
}

// Starts the long job and waits until process 0 has written iterations.
std::vector<pid_t> start_long_job(Lab& lab) {
  const std::string job = lab.write_job(kLongJob);
  std::vector<pid_t> hosts;
  for (int h = 0; h < kHosts; ++h) {
    hosts.push_back(
        lab.start_host(h, kHosts, job + " --allow-unfaithful --json " + lab.file("result.json")));
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
  // The process in the namespace is the child itself: ip and env replace themselves.
  ASSERT_EQ(kill(hosts[2], SIGKILL), 0);
  const auto began = steady_clock::now();
  for (int h : {0, 1, 3}) {
    EXPECT_EQ(lab->finish(hosts[static_cast<std::size_t>(h)], std::chrono::seconds(10)), 1)
        << lab->output(h);
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
  expect_partial_result(*lab);
}

TEST_F(Namespaces, CtrlCStopsEveryHostWithinASecond) {
  const auto hosts = start_long_job(*lab);
  const auto began = steady_clock::now();
  kill(hosts[0], SIGINT);
  EXPECT_EQ(lab->finish(hosts[0], std::chrono::seconds(5)), 130) << lab->output(0);
  for (int h : {1, 2, 3})
    EXPECT_NE(lab->finish(hosts[static_cast<std::size_t>(h)], std::chrono::seconds(5)), -1);
  EXPECT_LT(steady_clock::now() - began,
            std::chrono::milliseconds(1500));  // a second, and the files
  expect_partial_result(*lab);
}

TEST_F(Namespaces, AMissingPeerIsNamedWithinTheTimeOut) {
  const std::string job = lab->write_job(kLongJob);
  std::vector<pid_t> hosts;
  for (int h : {0, 1, 3}) hosts.push_back(lab->start_host(h, kHosts, job));
  for (pid_t pid : hosts) EXPECT_EQ(lab->finish(pid, std::chrono::seconds(20)), 3);
  EXPECT_NE(lab->output(0).find("2"), std::string::npos);
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

}  // namespace
}  // namespace ghostrank
