#include "tests/lab/lab.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <signal.h>
#include <sstream>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace ghostrank::testing {
namespace {

using std::chrono::steady_clock;

void must(const std::string& command) {
  if (shell(command) != 0) throw std::runtime_error("failed: " + command);
}

// Kills the processes in a namespace of the lab: the lab started them, whatever session they are
// in. One of them may just have started another, so look again.
void end_processes_of(const std::string& space) {
  for (int i = 0; i < 100; ++i) {
    const std::string kill_them = "ip netns pids " + space + " | xargs -r kill -KILL";
    if (shell(kill_them + "; test -z \"$(ip netns pids " + space + ")\"") == 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace

int shell(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str());
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> targets() {
  std::vector<std::string> all{"compiled"};
  const auto runner = std::filesystem::path(GHOSTRANK_BINARY).parent_path() / "ghostrank-dpdk";
  if (std::filesystem::exists(runner)) all.emplace_back("dpdk");
  return all;
}

bool has_bmv2() {
  // One by one: of several names, dash looks at the first alone, and bash is content with any.
  for (const char* program : {"simple_switch", "simple_switch_CLI", "p4c-bm2-ss"})
    if (shell(std::string("command -v ") + program) != 0) return false;
  return true;
}

Lab::Lab(int hosts)
    : hosts_(hosts),
      directory_(std::filesystem::temp_directory_path() /
                 ("ghostrank_lab_" + std::to_string(getpid()))) {
  std::filesystem::create_directories(directory_);
  try {
    must("ip netns add " + space("sw"));
    must(in("sw", "ip link add br0 type bridge"));
    must(in("sw", "ip link set br0 up"));
    for (int h = 0; h < hosts_; ++h) {
      must("ip netns add " + space(h));
      must("ip -n " + space(h) + " link add eth0 type veth peer name " + port(h) + " netns " +
           space("sw"));
      must(in(h, "ip addr add " + address(h) + "/24 dev eth0"));
      must(in(h, "ip link set eth0 up"));
      must(in(h, "ip link set lo up"));
      must(in("sw", "ip link set " + port(h) + " master br0 up"));
    }
  } catch (...) {
    remove();
    throw;
  }
}

Lab::~Lab() { remove(); }

void Lab::remove() {
  while (!children_.empty()) stop(*children_.begin());
  for (int h = 0; h < hosts_; ++h) {
    end_processes_of(space(h));
    shell("ip netns del " + space(h));
  }
  shell("ip netns del " + space("sw"));
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

bool Lab::possible() {
  const std::string probe = "ghostrank-probe-" + std::to_string(getpid());
  return geteuid() == 0 && shell("ip netns add " + probe) == 0 &&
         shell("ip netns del " + probe) == 0;
}

void Lab::change_rate(const LinkShape& link) {
  std::ostringstream rate;
  rate << std::fixed;
  rate.precision(0);
  rate << link.bits_per_second << "bit burst " << link.burst_bytes << "b cburst "
       << link.burst_bytes << "b quantum 65536";
  const auto limit = [&](const auto& where, const std::string& device) {
    must(in(where,
            "tc class replace dev " + device + " parent 1: classid 1:1 htb rate " + rate.str()));
  };
  for (int h = 0; h < hosts_; ++h) limit(h, "eth0");
  for (const std::string& port : ports()) limit("sw", port);
}

void Lab::shape(const LinkShape& link) {
  // Fails, harmlessly, when the qdisc is there already.
  const auto enqueue = [&](const auto& where, const std::string& device) {
    shell(in(where, "tc qdisc add dev " + device + " root handle 1: htb default 1"));
  };
  for (int h = 0; h < hosts_; ++h) enqueue(h, "eth0");
  for (const std::string& port : ports()) enqueue("sw", port);
  change_rate(link);
  for (int h = 0; h < hosts_; ++h) {
    // Not every kernel lets a namespace have cubic as its default; set_routes() sets it in any
    // case.
    shell(in(h, "sysctl -w net.ipv4.tcp_congestion_control=cubic"));
  }
  set_routes();
}

void Lab::keep_windows() {
  for (int h = 0; h < hosts_; ++h) {
    must(in(h, "sysctl -w net.ipv4.tcp_slow_start_after_idle=0"));
    must(in(h, "sysctl -w net.ipv4.tcp_rmem='4096 4194304 6291456'"));
    must(in(h, "sysctl -w net.ipv4.tcp_no_metrics_save=1"));
  }
  first_window_ = 200;  // 290 kB: 12 ms of a link of 200 Mbit/s
  set_routes();
}

void Lab::set_routes() {
  const std::string window = first_window_ > 0 ? " initcwnd " + std::to_string(first_window_) : "";
  for (int h = 0; h < hosts_; ++h)
    must(in(
        h, "ip route replace 10.77.0.0/24 dev eth0 src " + address(h) + " congctl cubic" + window));
}

std::vector<std::string> Lab::ports() const {
  std::vector<std::string> all;
  for (int h = 0; h < hosts_; ++h) all.push_back(port(h));
  if (two_leaves_) all.insert(all.end(), {"trunk0", "trunk1"});
  return all;
}

void Lab::add_leaf() {
  must(in("sw", "ip link add leaf1 type bridge"));
  must(in("sw", "ip link set leaf1 up"));
  must(in("sw", "ip link add trunk0 type veth peer name trunk1"));
  must(in("sw", "ip link set trunk0 master br0 up"));
  must(in("sw", "ip link set trunk1 master leaf1 up"));
  for (int h = 1; h < hosts_; h += 2) must(in("sw", "ip link set " + port(h) + " master leaf1"));
  two_leaves_ = true;
}

void Lab::add_rail() {
  must(in("sw", "ip link add br1 type bridge"));
  must(in("sw", "ip link set br1 up"));
  for (int h = 0; h < hosts_; ++h) {
    must("ip -n " + space(h) + " link add eth1 type veth peer name second" + std::to_string(h) +
         " netns " + space("sw"));
    must(in(h, "ip addr add 10.77.1." + std::to_string(h + 1) + "/24 dev eth1"));
    must(in(h, "ip link set eth1 up"));
    must(in("sw", "ip link set second" + std::to_string(h) + " master br1 up"));
  }
}

void Lab::leave_bridge() {
  for (int h = 0; h < hosts_; ++h) must(in("sw", "ip link set " + port(h) + " nomaster"));
}

std::string Lab::in(int host, const std::string& command) const {
  return "ip netns exec " + space(host) + " " + command;
}

std::string Lab::in(const std::string& where, const std::string& command) const {
  return "ip netns exec " + space(where) + " " + command;
}

pid_t Lab::start(const std::string& command, const std::string& output) {
  const pid_t pid = fork();
  // kill(-1) in stop() would signal every process of the machine.
  if (pid < 0) throw std::runtime_error("cannot start " + command + ": " + std::strerror(errno));
  if (pid == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // the child does not outlive a killed test
    execl("/bin/sh", "sh", "-c", ("exec " + command + " >" + file(output) + " 2>&1").c_str(),
          nullptr);
    _exit(127);
  }
  children_.insert(pid);
  return pid;
}

pid_t Lab::start_process(int host, int size, const std::string& command) {
  return start(in(host, "env RANK=" + std::to_string(host) + " WORLD_SIZE=" + std::to_string(size) +
                            " MASTER_ADDR=" + address(0) + " MASTER_PORT=" + std::to_string(kPort) +
                            " GHOSTRANK_TIMEOUT_S=10 " + command),
               "host" + std::to_string(host));
}

pid_t Lab::start_host(int host, int size, const std::string& arguments) {
  return start_process(host, size, std::string(GHOSTRANK_BINARY) + " run " + arguments);
}

int Lab::finish(pid_t pid, std::chrono::seconds limit) {
  const auto deadline = steady_clock::now() + limit;
  for (int status = 0; steady_clock::now() < deadline;
       std::this_thread::sleep_for(std::chrono::milliseconds(5))) {
    if (waitpid(pid, &status, WNOHANG) != pid) continue;
    children_.erase(pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return -1;
}

bool Lab::running(pid_t pid) const {
  siginfo_t ended{};
  return waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         ended.si_pid == 0;
}

void Lab::stop(pid_t pid) {
  kill(-pid, SIGKILL);
  kill(pid, SIGKILL);  // it may not lead its group yet
  waitpid(pid, nullptr, 0);
  children_.erase(pid);
}

std::uint64_t Lab::sent_by(int host) const {
  return std::stoull(
      output_of(in("sw", "cat /sys/class/net/" + port(host) + "/statistics/rx_bytes")));
}

std::uint64_t Lab::segments_sent_again() const {
  std::uint64_t all = 0;
  for (int h = 0; h < hosts_; ++h)
    all += std::stoull(output_of(in(h, "nstat -asz TcpRetransSegs | awk '/Retrans/ {print $2}'")));
  return all;
}

std::string Lab::write_job(const std::string& rest) const {
  std::ofstream out(file("job.yaml"));
  out << "schema: ghostrank/job/1\n"
         "cluster: {nodes: 4, gpus_per_node: 2, nics_per_node: 2, nic: {rate: 10Gbps, "
         "latency_us: 5}}\n"
         "fabric: {kind: ofi, provider: net}\n"
      << rest;
  return file("job.yaml");
}

std::string Lab::space(const std::string& name) const {
  return "ghostrank-" + std::to_string(getpid()) + "-" + name;
}

std::string Lab::output_of(const std::string& command) const {
  if (std::system((command + " >" + file("count")).c_str()) != 0)
    throw std::runtime_error("failed: " + command);
  return read_file(file("count"));
}

}  // namespace ghostrank::testing
