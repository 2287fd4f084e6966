#include "emulator/fabric/udp_address.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>

#include "profiles/error.h"
#include "switch/wire/switchml.h"

namespace ghostrank::udp {

Address Address::from(const std::string& text) {
  const std::size_t space = text.find(' ');
  const std::string host = text.substr(0, space),
                    port = space == std::string::npos ? "0" : text.substr(space + 1);
  addrinfo hints{}, *found = nullptr;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_DGRAM;
  if (host.empty() || getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0)
    throw Error("'" + text +
                    "' is no address of a host to send packets from or to; choose one "
                    "with fabric.bind",
                ErrorKind::environment);
  Address address;
  address.size = found->ai_addrlen;
  std::memcpy(&address.bytes, found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  return address;
}

std::string Address::text() const {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  getnameinfo(reinterpret_cast<const sockaddr*>(&bytes), size, host.data(), host.size(),
              port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV);
  return std::string(host.data()) + " " + port.data();
}

bool Address::has_port_of_switches() const {
  sockaddr_in in{};
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  std::memcpy(&in, &bytes, sizeof in);
  return (ntohs(in.sin_port) & switchml::kUdpPortMask) == switchml::kUdpPort;
}

std::uint32_t Address::ip_and_udp() const { return (bytes.ss_family == AF_INET6 ? 40 : 20) + 8; }

bool Address::forbid_fragments(int socket) const {
  const int probe = IP_PMTUDISC_PROBE;
  static_assert(IP_PMTUDISC_PROBE == IPV6_PMTUDISC_PROBE);
  const bool v6 = bytes.ss_family == AF_INET6;
  return setsockopt(socket, v6 ? IPPROTO_IPV6 : IPPROTO_IP,
                    v6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, &probe, sizeof probe) == 0;
}

void Address::mark(int socket, int dscp) const {
  if (dscp < 0) return;
  const int field = dscp << 2;  // below it are the two bits of ECN
  const bool v6 = bytes.ss_family == AF_INET6;
  if (setsockopt(socket, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_TCLASS : IP_TOS, &field,
                 sizeof field) != 0)
    throw Error("packets from " + text() + " cannot be marked: " + std::strerror(errno) +
                    "; leave fabric.dscp out",
                ErrorKind::environment);
}

}  // namespace ghostrank::udp
