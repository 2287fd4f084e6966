#include "emulator/host/counters.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "emulator/host/interfaces.h"
#include "emulator/host/network_namespace.h"
#include "switch/ports/fd.h"

namespace ghostrank {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStatistics[] = {"tx_bytes",   "rx_bytes",   "tx_packets", "rx_packets",
                                       "tx_dropped", "rx_dropped", "tx_errors",  "rx_errors"};
// Drivers have thousands of counters; names with these words tell about a network in trouble.
constexpr std::string_view kTelling[] = {"drop",    "discard", "err",  "pause", "ecn",    "cnp",
                                         "retrans", "timeout", "cong", "crc",   "out_of", "missed"};
constexpr std::uint32_t kMostDriverCounters = 1u << 16;

std::optional<std::uint64_t> read_number(const fs::path& file) {
  std::ifstream in(file);
  std::uint64_t value = 0;
  if (in >> value) return value;
  return std::nullopt;
}

void add_statistics(const std::string& device, const std::string& sysfs, Counters& out) {
  for (const char* name : kStatistics) {
    if (const auto value =
            read_number(fs::path(sysfs) / "class/net" / device / "statistics" / name))
      out[name] = *value;
  }
}

// Sends an ethtool request: a fixed head, then a buffer that the driver fills. False: it failed.
template <typename Head>
bool ask_driver(int fd, const std::string& device, Head* request) {
  ifreq ask{};
  device.copy(ask.ifr_name, IFNAMSIZ - 1);
  ask.ifr_data = reinterpret_cast<char*>(request);
  return ioctl(fd, SIOCETHTOOL, &ask) == 0;
}

void add_driver_counters(int fd, const std::string& device, Counters& out) {
  ethtool_drvinfo info{};
  info.cmd = ETHTOOL_GDRVINFO;
  if (!ask_driver(fd, device, &info) || info.n_stats == 0 || info.n_stats > kMostDriverCounters)
    return;
  const std::size_t count = info.n_stats;
  // 64-bit words: both replies begin with a whole number of them.
  std::vector<std::uint64_t> name_words(2 + count * ETH_GSTRING_LEN / sizeof(std::uint64_t));
  std::vector<std::uint64_t> value_words(1 + count);
  auto* names = reinterpret_cast<ethtool_gstrings*>(name_words.data());
  names->cmd = ETHTOOL_GSTRINGS;
  names->string_set = ETH_SS_STATS;
  names->len = info.n_stats;
  auto* values = reinterpret_cast<ethtool_stats*>(value_words.data());
  values->cmd = ETHTOOL_GSTATS;
  values->n_stats = info.n_stats;
  if (!ask_driver(fd, device, names) || !ask_driver(fd, device, values)) return;
  if (names->len != info.n_stats || values->n_stats != info.n_stats) return;
  for (std::size_t i = 0; i < count; ++i) {
    const char* text = reinterpret_cast<const char*>(names->data + i * ETH_GSTRING_LEN);
    const std::string name(text, strnlen(text, ETH_GSTRING_LEN));
    const bool tells =
        std::any_of(std::begin(kTelling), std::end(kTelling),
                    [&](std::string_view word) { return name.find(word) != std::string::npos; });
    if (tells) out["ethtool." + name] = values->data[i];
  }
}

void add_driver_counters(const std::string& device, Counters& out) {
  const Fd any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (any.is_open()) add_driver_counters(any.get(), device, out);
}

void add_rdma_counters(const fs::path& rdma_device, Counters& out) {
  std::error_code error;
  for (const auto& port : fs::directory_iterator(rdma_device / "ports", error)) {
    for (const char* kind : {"counters", "hw_counters"}) {
      for (const auto& file : fs::directory_iterator(port.path() / kind, error)) {
        if (const auto value = read_number(file.path()))
          out["rdma." + port.path().filename().string() + "." + file.path().filename().string()] =
              *value;
      }
    }
  }
}

std::optional<std::uint64_t> moved(const std::optional<std::uint64_t>& from,
                                   const std::optional<std::uint64_t>& to) {
  if (!from || !to) return std::nullopt;
  return *to - *from;
}

}  // namespace

std::vector<std::string> interfaces_of(const std::string& address) {
  std::vector<std::string> all, bound;
  for (const Interface& i : list_interfaces()) {
    all.push_back(i.name);
    if (std::find(i.addresses.begin(), i.addresses.end(), address) != i.addresses.end())
      bound.push_back(i.name);
  }
  return bound.empty() ? all : bound;
}

std::vector<CountedInterface> counted_interfaces(const std::string& network_namespace,
                                                 const std::string& address) {
  const InNamespace inside(network_namespace);
  std::vector<CountedInterface> counted;
  for (std::string& device : interfaces_of(address))
    counted.push_back({network_namespace, std::move(device)});
  return counted;
}

InterfaceLog::InterfaceLog(CountedInterface interface, std::string sysfs)
    : interface_(std::move(interface)), sysfs_(std::move(sysfs)) {
  if (interface_.network_namespace.empty()) return;
  const InNamespace inside(interface_.network_namespace);
  table_.emplace();
}

ByteCounts InterfaceLog::bytes() {
  if (table_) {
    const Counters now = table_->of(interface_.device);
    const auto tx = now.find("tx_bytes"), rx = now.find("rx_bytes");
    if (tx == now.end() || rx == now.end()) return {};
    return {tx->second, rx->second};
  }
  const fs::path statistics = fs::path(sysfs_) / "class/net" / interface_.device / "statistics";
  return {read_number(statistics / "tx_bytes"), read_number(statistics / "rx_bytes")};
}

Counters InterfaceLog::all() {
  const std::string& device = interface_.device;
  if (table_) {
    Counters now = table_->of(device);
    const InNamespace inside(interface_.network_namespace);
    add_driver_counters(device, now);
    return now;
  }
  Counters now;
  add_statistics(device, sysfs_, now);
  add_driver_counters(device, now);
  std::error_code error;
  for (const auto& rdma : fs::directory_iterator(fs::path(sysfs_) / "class/infiniband", error)) {
    if (fs::exists(rdma.path() / "device/net" / device, error)) add_rdma_counters(rdma.path(), now);
  }
  return now;
}

void InterfaceLog::begin() {
  before_ = all();
  marks_ = {bytes()};
}

void InterfaceLog::mark() { marks_.push_back(bytes()); }

InterfaceReport InterfaceLog::end(Host host) {
  InterfaceReport report;
  report.host = host;
  report.network_namespace = interface_.network_namespace;
  report.device = interface_.device;
  report.loopback = interface_.device == "lo";
  const ByteCounts now = bytes(), &first = marks_.front();
  report.tx_bytes = moved(first.tx_bytes, now.tx_bytes);
  report.rx_bytes = moved(first.rx_bytes, now.rx_bytes);
  for (std::size_t i = 1; i < marks_.size(); ++i) {
    report.iterations.push_back({moved(marks_[i - 1].tx_bytes, marks_[i].tx_bytes),
                                 moved(marks_[i - 1].rx_bytes, marks_[i].rx_bytes)});
  }
  for (const auto& [name, value] : all()) {
    const auto then = before_.find(name);
    if (then == before_.end()) continue;
    // Reports the common counters even if unchanged: 0 dropped packets is a result, too.
    const bool common = name.find('.') == std::string::npos;
    if (common || value != then->second) report.counters.emplace_back(name, value - then->second);
  }
  return report;
}

}  // namespace ghostrank
