// Four hosts, each a network namespace with a veth into a bridge that has a namespace of its own:
// nothing of the machine's own network is touched, and everything is removed at the end.
#pragma once

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <signal.h>
#include <sstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ghostrank::testing {

using nlohmann::json;
using std::chrono::steady_clock;

inline constexpr int kHosts = 4;
inline constexpr int kPort = 29500;

inline int shell(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str());
}

inline std::string read_file(const std::filesystem::path& path) {
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
  // A second interface of every host, eth1, on a bridge of its own.
  void add_rail() {
    must(in("sw", "ip link add br1 type bridge"));
    must(in("sw", "ip link set br1 up"));
    for (int h = 0; h < kHosts; ++h) {
      must("ip -n " + space(h) + " link add eth1 type veth peer name second" + std::to_string(h) +
           " netns " + space("sw"));
      must(in(h, "ip addr add 10.77.1." + std::to_string(h + 1) + "/24 dev eth1"));
      must(in(h, "ip link set eth1 up"));
      must(in("sw", "ip link set second" + std::to_string(h) + " master br1 up"));
    }
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

  // Bytes that host's port of the bridge took in, headers included.
  std::uint64_t sent_by(int host) const {
    shell_to(in("sw", "cat /sys/class/net/" + port(host) + "/statistics/rx_bytes"), file("count"));
    return std::stoull(read_file(file("count")));
  }
  // The hosts' namespaces, as fabric.namespaces wants them.
  std::string pattern() const { return space("h{node}"); }

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
  static void shell_to(const std::string& command, const std::string& file) {
    if (std::system((command + " >" + file).c_str()) != 0)
      throw std::runtime_error("failed: " + command);
  }
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

}  // namespace ghostrank::testing
