// Datagrams over UDP. One owner has a socket per address that it binds to, in the network namespace
// that the address belongs to; ways lead from one of its sockets to one of another owner.
//
// A datagram is the 64-byte header of wire.h, then its payload or, where that is synthetic, bytes
// of a scratch buffer. Don't-fragment is set: what is larger than the path's MTU does not arrive,
// which is found out before the start (setup.h).
//
// Errors: Error(environment) while it is opened. Threading: as packets.h says.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "emulator/fabric/open.h"
#include "emulator/packets/packets.h"

namespace ghostrank {

struct UdpOptions {
  std::vector<EndpointBinding> sockets;
  std::uint64_t nonce = 0;
  std::uint32_t mtu = 1500;   // bytes of the largest IP packet
  bool keep_payload = false;  // verify mode: give every arrived datagram its bytes
};

struct UdpWay {
  int socket = 0;       // of ours
  std::string address;  // of the socket at the other end, as it told
  std::string name;     // of who is there, for messages
};

class UdpPackets : public Packets {
 public:
  static std::unique_ptr<UdpPackets> open(const UdpOptions& options);

  virtual std::string address(int socket) const = 0;  // "10.0.0.1 4711", to give to the others
  // Way i is `ways[i]` from now on; called once, before any try_send.
  virtual void connect(const std::vector<UdpWay>& ways) = 0;
  // Why the last datagram that a socket could not send was refused; empty: none was.
  virtual std::string trouble(int socket) const = 0;
};

}  // namespace ghostrank
