#include "emulator/fabric/send_cap.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <tuple>

#include "emulator/host/counters.h"
#include "emulator/host/network_namespace.h"
#include "switch/ports/fd.h"

namespace ghostrank {
namespace {

// Ethernet's, IPv6's, and TCP's with time stamps or UDP's: the most that precedes the bytes of a
// frame.
constexpr std::uint32_t kEthernet = 14, kIpAndTcp = 40 + 32, kIpAndUdp = 40 + 8;
constexpr std::uint32_t kUnknownMtu = 1500;  // and for interfaces that tell less

std::uint32_t mtu_of(const std::string& device) {
  const Fd any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq ask{};
  device.copy(ask.ifr_name, IFNAMSIZ - 1);
  if (!any.is_open() || ioctl(any.get(), SIOCGIFMTU, &ask) != 0) return kUnknownMtu;
  return static_cast<std::uint32_t>(std::max(ask.ifr_mtu, 2 * static_cast<int>(kIpAndTcp)));
}

}  // namespace

SendCap::SendCap(double bits_per_second, std::uint32_t mtu)
    : bps_(bits_per_second * (1 - kReserve)), mtu_(mtu) {}

std::uint64_t SendCap::on_wire(std::uint64_t bytes, std::uint64_t datagrams) const {
  if (datagrams > 0) return bytes + datagrams * (kEthernet + kIpAndUdp);
  const std::uint64_t full = mtu_ - kIpAndTcp;
  return bytes + std::max<std::uint64_t>(1, (bytes + full - 1) / full) * (kEthernet + kIpAndTcp);
}

void SendCap::sent(std::uint64_t bytes, std::uint64_t datagrams, std::int64_t now_ns) {
  const auto takes =
      static_cast<std::int64_t>(8e9 * static_cast<double>(on_wire(bytes, datagrams)) / bps_);
  std::int64_t before = opens_ns();
  while (!next_ns_.compare_exchange_weak(before, std::max(before, now_ns - kCredit) + takes,
                                         std::memory_order_relaxed)) {
  }
}

double SendCap::stream_bps() const {
  const std::uint64_t full = mtu_ - kIpAndTcp;
  return bps_ * static_cast<double>(full) / static_cast<double>(on_wire(full, 0));
}

double SendCap::datagrams_bps(std::uint32_t bytes, std::uint32_t carried,
                              std::uint32_t answer) const {
  return bps_ * carried / static_cast<double>(on_wire(bytes, 1) + on_wire(answer, 1));
}

std::shared_ptr<SendCap> send_cap_of(const std::string& network_namespace,
                                     const std::string& address, double bits_per_second) {
  static std::mutex mutex;
  static std::map<std::tuple<std::string, std::string, double>, std::weak_ptr<SendCap>> known;
  // Without an address of its own, a socket may use any interface: they share one cap.
  const std::vector<CountedInterface> used = counted_interfaces(network_namespace, address);
  const std::string device = used.size() == 1 ? used.front().device : "";
  const std::lock_guard lock(mutex);
  std::weak_ptr<SendCap>& entry = known[{network_namespace, device, bits_per_second}];
  std::shared_ptr<SendCap> cap = entry.lock();
  if (cap) return cap;
  const InNamespace inside(network_namespace);
  cap = std::make_shared<SendCap>(bits_per_second, device.empty() ? kUnknownMtu : mtu_of(device));
  entry = cap;
  return cap;
}

}  // namespace ghostrank
