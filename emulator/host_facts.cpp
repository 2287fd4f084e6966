#include "emulator/host_facts.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <netdb.h>
#include <sched.h>
#include <sstream>
#include <sys/socket.h>
#include <unistd.h>

namespace ghostrank {
namespace {

std::uint64_t kib_field(const char* file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(key, 0) != 0) continue;
    std::istringstream rest(line.substr(key.size()));
    std::uint64_t kib = 0;
    rest >> kib;
    return kib * 1024;
  }
  return 0;
}

std::optional<std::uint64_t> read_counter(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::uint64_t value = 0;
  if (in >> value) return value;
  return std::nullopt;
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::uint64_t resident_bytes() { return kib_field("/proc/self/status", "VmRSS:"); }

std::uint64_t available_memory_bytes() { return kib_field("/proc/meminfo", "MemAvailable:"); }

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

std::string local_address_towards(const std::string& remote) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(remote.c_str(), "9", &hints, &found) != 0 || !found) return "";
  std::string address;
  const int fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_storage local{};
  socklen_t length = sizeof local;
  // Connecting a datagram socket sends nothing; it only asks the routing table.
  if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
      getsockname(fd, reinterpret_cast<sockaddr*>(&local), &length) == 0) {
    std::array<char, NI_MAXHOST> text{};
    if (getnameinfo(reinterpret_cast<sockaddr*>(&local), length, text.data(), text.size(), nullptr,
                    0, NI_NUMERICHOST) == 0) {
      address = text.data();
    }
  }
  if (fd >= 0) close(fd);
  freeaddrinfo(found);
  return address;
}

std::vector<InterfaceReport> read_interfaces(int host, const std::string& root) {
  std::vector<InterfaceReport> all;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/class/net", error)) {
    const auto statistics = entry.path() / "statistics";
    InterfaceReport report;
    report.host = host;
    report.device = entry.path().filename();
    report.tx_bytes = read_counter(statistics / "tx_bytes");
    report.rx_bytes = read_counter(statistics / "rx_bytes");
    all.push_back(std::move(report));
  }
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.device < b.device; });
  return all;
}

std::vector<InterfaceReport> difference(const std::vector<InterfaceReport>& before,
                                        const std::vector<InterfaceReport>& after) {
  std::vector<InterfaceReport> moved;
  for (const InterfaceReport& now : after) {
    for (const InterfaceReport& then : before) {
      if (then.device != now.device) continue;
      InterfaceReport d = now;
      if (now.tx_bytes && then.tx_bytes) d.tx_bytes = *now.tx_bytes - *then.tx_bytes;
      if (now.rx_bytes && then.rx_bytes) d.rx_bytes = *now.rx_bytes - *then.rx_bytes;
      if (d.tx_bytes.value_or(1) + d.rx_bytes.value_or(1) > 0) moved.push_back(std::move(d));
    }
  }
  return moved;
}

}  // namespace ghostrank
