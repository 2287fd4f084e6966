// Address and port of a UDP socket. Threading: a plain value.
#pragma once

#include <cstdint>
#include <string>
#include <sys/socket.h>

namespace ghostrank::udp {

struct Address {
  sockaddr_storage bytes{};
  socklen_t size = 0;

  // "10.0.0.1 4711". Throws Error(environment).
  static Address from(const std::string& text);
  std::string text() const;
  // True for UDP ports of SwitchML: a switch on the path would take datagrams to them for its own.
  // The kernel may choose such a port for a socket.
  bool has_port_of_switches() const;
  // Bytes of the headers of IP and UDP in a packet to or from it.
  std::uint32_t ip_and_udp() const;
  // Sets don't-fragment for a socket of its family, whatever path MTU routers tell. False: errno
  // says why.
  bool forbid_fragments(int socket) const;
  // Gives what a socket of its family sends a differentiated services code point; -1: leaves it as
  // it is. Throws Error(environment).
  void mark(int socket, int dscp) const;
};

}  // namespace ghostrank::udp
