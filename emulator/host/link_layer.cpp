#include "emulator/host/link_layer.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "emulator/common/require_fd.h"
#include "emulator/host/interfaces.h"
#include "profiles/error.h"

namespace ghostrank {
namespace {

void put_name(char* to, std::size_t room, const std::string& name) {
  std::memcpy(to, name.data(), std::min(name.size(), room - 1));
}

}  // namespace

NetworkDevice device_of_address(const std::string& address) {
  for (const Interface& i : list_interfaces()) {
    if (std::find(i.addresses.begin(), i.addresses.end(), address) == i.addresses.end()) continue;
    const Fd socket = require_fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request{};
    put_name(request.ifr_name, sizeof request.ifr_name, i.name);
    if (ioctl(socket.get(), SIOCGIFHWADDR, &request) != 0) break;
    std::array<unsigned char, 6> mac{};
    std::memcpy(mac.data(), request.ifr_hwaddr.sa_data, mac.size());
    std::array<char, 18> text{};
    std::snprintf(text.data(), text.size(), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
                  mac[3], mac[4], mac[5]);
    return {i.name, text.data()};
  }
  throw Error("no interface here has the address " + address + "; there are " +
                  interfaces_text(list_interfaces()),
              ErrorKind::environment);
}

void set_neighbour(const std::string& device, const std::string& address, const std::string& mac) {
  arpreq request{};
  auto* ip = reinterpret_cast<sockaddr_in*>(&request.arp_pa);
  ip->sin_family = AF_INET;
  std::array<unsigned, 6> bytes{};
  if (inet_pton(AF_INET, address.c_str(), &ip->sin_addr) != 1 ||
      std::sscanf(mac.c_str(), "%2x:%2x:%2x:%2x:%2x:%2x", &bytes[0], &bytes[1], &bytes[2],
                  &bytes[3], &bytes[4], &bytes[5]) != 6)
    throw Error("'" + address + "' is no IPv4 address or '" + mac + "' no MAC address",
                ErrorKind::environment);
  request.arp_ha.sa_family = ARPHRD_ETHER;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    request.arp_ha.sa_data[i] = static_cast<char>(bytes[i]);
  request.arp_flags = ATF_COM | ATF_PERM;
  put_name(request.arp_dev, sizeof request.arp_dev, device);
  const Fd socket = require_fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (ioctl(socket.get(), SIOCSARP, &request) == 0) return;
  throw Error(
      "the switch's address " + address + " cannot be made known on " + device + ": " +
          std::strerror(errno) + (errno == EPERM ? "; it needs root (CAP_NET_ADMIN)" : "") +
          (errno == ENETUNREACH ? "; give the switch an address in that interface's network" : ""),
      ErrorKind::environment);
}

void turn_offloads_off(const std::string& device) {
  const Fd socket = require_fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  for (const std::uint32_t off :
       {ETHTOOL_STXCSUM, ETHTOOL_SGSO, ETHTOOL_STSO, ETHTOOL_SGRO, ETHTOOL_SRXCSUM}) {
    ethtool_value value{off, 0};
    ifreq request{};
    put_name(request.ifr_name, sizeof request.ifr_name, device);
    request.ifr_data = reinterpret_cast<char*>(&value);
    if (ioctl(socket.get(), SIOCETHTOOL, &request) == 0 || errno == EOPNOTSUPP) continue;
    throw Error("offloads of interface '" + device +
                    "' cannot be turned off: " + std::strerror(errno) +
                    (errno == EPERM    ? "; it needs root (CAP_NET_ADMIN)"
                     : errno == ENODEV ? "; name the interfaces that there are"
                                       : ""),
                ErrorKind::environment);
  }
}

}  // namespace ghostrank
