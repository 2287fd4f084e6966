// Datagrams over UDP. An owner has a socket per address that it binds to, in the network namespace
// of that address. A flow leads from one of its sockets to a socket of another owner.
//
// A datagram is the 64-byte header of fabric/wire.h, then its payload or, where that is synthetic,
// the bytes of a scratch buffer. Don't-fragment is set, so a datagram larger than the path's MTU
// does not arrive; the set-up finds that out before the start (setup.h).
//
// Errors: Error(environment) while opening. Threading: as packets.h says.
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

struct PacketFlow {
  int socket = 0;       // index of our socket
  std::string address;  // of the socket at the other end, as address() there returned it
  std::string name;     // of the process there, for messages
};

class UdpPackets : public Packets {
 public:
  static std::unique_ptr<UdpPackets> open(const UdpOptions& options);

  virtual std::string address(int socket) const = 0;  // "10.0.0.1 4711", to give to the others
  // Flow i is `flows[i]` from now on. Call it once, before any try_send.
  virtual void connect(const std::vector<PacketFlow>& flows) = 0;
  // Returns why the socket could not send the last datagram that it failed to send; empty: none
  // failed.
  virtual std::string trouble(int socket) const = 0;
};

}  // namespace ghostrank
