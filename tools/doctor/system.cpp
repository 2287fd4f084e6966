// Network interfaces, limits of the system and programs on the path (see findings.h).
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/resource.h>
#include <unistd.h>

#include "emulator/control/world_pmix.h"
#include "tools/doctor/findings.h"
#include "tools/switching/child.h"
#include "tools/text/humane.h"

namespace ghostrank {
namespace {

namespace fs = std::filesystem;

constexpr long kJumboFromMbps = 10'000;     // below, frames of 1500 bytes cost little
constexpr rlim_t kWantedFiles = 4'096;      // one descriptor per connection, and some
constexpr long kWantedTcpBuffer = 6 << 20;  // what Linux allows by default

long number_of(const fs::path& path) {
  const std::string line = first_line(path);
  return line.empty() ? -1 : std::strtol(line.c_str(), nullptr, 10);
}

Finding interface_finding(const fs::path& directory) {
  const std::string name = directory.filename();
  const long mtu = number_of(directory / "mtu");
  const long speed = number_of(directory / "speed");
  const std::string state = first_line(directory / "operstate");
  std::string value = "mtu " + std::to_string(mtu) + ", ";
  value += speed > 0 ? humane_bits(static_cast<double>(speed) * 1e6) : "speed unknown";
  value += ", " + (state == "unknown" ? "state unknown" : state);
  const bool weak = state == "up" && speed >= kJumboFromMbps && mtu < 9000;
  return {"network", name, value, weak,
          weak ? "sudo ip link set dev " + name + " mtu 9000   # where the switch carries it" : ""};
}

Finding tcp_buffer_finding(const char* key) {
  const std::string line = first_line(std::string("/proc/sys/net/ipv4/") + key);
  std::istringstream fields(line);
  long least = 0, usual = 0, most = -1;
  fields >> least >> usual >> most;
  const bool weak = most >= 0 && most < kWantedTcpBuffer / 2;
  return {"network", key,
          most < 0 ? "unreadable" : "up to " + humane_bytes(static_cast<double>(most)), weak,
          weak ? "sudo sysctl -w net.ipv4." + std::string(key) + "='" + std::to_string(least) +
                     " " + std::to_string(usual) + " " + std::to_string(kWantedTcpBuffer) + "'"
               : ""};
}

// One host alone cannot see the path's MTU; it can only tell whether its TCP would adapt to a
// narrow path.
Finding path_mtu_finding() {
  const long probing = number_of("/proc/sys/net/ipv4/tcp_mtu_probing");
  std::string value = "checked by every run between its hosts, before it starts";
  if (probing == 0)
    value +=
        "; where a switch drops large frames TCP does not find out by itself (sudo sysctl -w "
        "net.ipv4.tcp_mtu_probing=1)";
  return {"network", "path MTU", value};
}

std::string limit_text(rlim_t limit) {
  return limit == RLIM_INFINITY ? "unlimited" : humane_count(static_cast<double>(limit));
}

Finding files_finding() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const bool weak = limit.rlim_cur < kWantedFiles;
  const bool root_needed = limit.rlim_max < kWantedFiles;
  return {
      "limits", "open files", limit_text(limit.rlim_cur) + " of " + limit_text(limit.rlim_max),
      weak,
      weak ? (root_needed ? "sudo prlimit --pid $$ --nofile=4096:4096" : "ulimit -n 4096") : ""};
}

Finding locked_memory_finding() {
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  const bool rdma = fs::exists("/sys/class/infiniband");
  const bool weak = rdma && limit.rlim_cur != RLIM_INFINITY;
  return {"limits", "locked memory",
          limit.rlim_cur == RLIM_INFINITY ? "unlimited"
                                          : humane_bytes(static_cast<double>(limit.rlim_cur)),
          weak,
          weak ? "sudo prlimit --pid $$ --memlock=unlimited:unlimited   # RDMA pins memory" : ""};
}

std::string on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream directories(path == nullptr ? "" : path);
  for (std::string directory; std::getline(directories, directory, ':');) {
    std::string candidate = directory.append("/").append(program);
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

}  // namespace

Finding congestion_control_finding(const std::string& control, const std::string& available) {
  const std::string name = "tcp congestion control";
  if (control.empty()) return {"network", name, "unreadable"};
  // BBR (bbr, bbr2, bbr3) paces by its estimate of a link's rate, and loopback is no link.
  if (!control.starts_with("bbr")) return {"network", name, control};
  std::istringstream words(available);
  bool loaded = false;
  for (std::string word; words >> word;) loaded |= word == "cubic";
  return {"network", name,
          control + ": between processes of one machine it carries about half of what cubic does",
          true,
          std::string(loaded ? "" : "sudo modprobe tcp_cubic && ") +
              "sudo sysctl -w net.ipv4.tcp_congestion_control=cubic   # for several processes of "
              "one machine; between machines take what the real cluster has"};
}

std::string first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

Findings look_at_network() {
  Findings findings;
  std::error_code ignored;
  std::vector<fs::path> interfaces;
  for (const auto& entry : fs::directory_iterator("/sys/class/net", ignored)) {
    if (fs::exists(entry.path() / "mtu")) interfaces.push_back(entry.path());
  }
  std::sort(interfaces.begin(), interfaces.end());
  for (const fs::path& path : interfaces) findings.push_back(interface_finding(path));
  const std::string ipv4 = "/proc/sys/net/ipv4/tcp_";
  findings.push_back(congestion_control_finding(first_line(ipv4 + "congestion_control"),
                                                first_line(ipv4 + "available_congestion_control")));
  findings.push_back(path_mtu_finding());
  findings.push_back(tcp_buffer_finding("tcp_rmem"));
  findings.push_back(tcp_buffer_finding("tcp_wmem"));
  return findings;
}

Findings look_at_limits() {
  Findings findings{files_finding(), locked_memory_finding()};
  const std::string thp = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  findings.push_back({"limits", "transparent huge pages", thp.empty() ? "unreadable" : thp});
  const bool readable = !first_line("/proc/self/schedstat").empty();
  findings.push_back(
      {"limits", "run queue statistics", readable ? "readable" : "unreadable", !readable,
       readable ? ""
                : "boot a kernel with CONFIG_SCHED_INFO: without /proc/self/schedstat "
                  "a run cannot see that it waits for a core"});
  return findings;
}

Findings look_at_switches() {
  const std::string dpdk = program_of_ours("ghostrank-dpdk");
  std::string missing;
  for (const char* program : {"simple_switch", "simple_switch_CLI", "p4c-bm2-ss"}) {
    if (on_path(program).empty()) missing += (missing.empty() ? "" : ", ") + std::string(program);
  }
  return {
      {"switch", "compiled", "always there"},
      {"switch", "dpdk", dpdk.empty() ? "not built; it needs libdpdk-dev" : dpdk},
      {"switch", "bmv2",
       missing.empty() ? on_path("simple_switch") : "not on the path: " + missing + " (p4lang's)"}};
}

Findings look_at_programs() {
  Findings findings;
  for (const char* program : {"nvidia-smi", "rocm-smi"}) {
    if (const std::string at = on_path(program); !at.empty())
      findings.push_back({"gpu", program, at});
  }
  if (findings.empty()) findings.push_back({"gpu", "none", "none found; none is needed"});
  for (const char* launcher : {"mpirun", "srun", "torchrun"}) {
    const std::string at = on_path(launcher);
    findings.push_back({"launchers", launcher, at.empty() ? "not on the path" : at});
  }
  const std::string pmix = pmix_version();
  findings.push_back(
      {"launchers", "PMIx",
       pmix.empty() ? "built without: mpirun needs MASTER_ADDR and MASTER_PORT"
                    : pmix + (pmix_present() ? ", started by a launcher that has it" : ""),
       pmix.empty(), pmix.empty() ? "sudo apt-get install libpmix-dev   # and build again" : ""});
  return findings;
}

}  // namespace ghostrank
