// Packets between ranks and a switch outside ghostrank: datagrams in a scheme's own form, without
// ghostrank's header. Each member of a communicator that the switch serves has a UDP socket of its
// own, bound to the address of its NIC, so the socket tells which member a packet is for, and all
// packets of a member are one flow, in order.
//
// Flow i is socket i. A message's payload is the whole datagram. An arrival gets the header of its
// socket (`arrivals`), with its length and the whole payload.
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

struct SwitchSocket {
  EndpointBinding binding;     // an IPv4 address
  std::string device;          // that packets must leave by; empty: as the kernel routes them
  std::uint16_t port = 0;      // to bind to
  std::string switch_address;  // "10.0.0.254"
  std::uint16_t switch_port = 0;
  Header arrivals;  // group, source, target and kind of arriving packets
};

// `mtu`: bytes of the largest IP packet.
std::unique_ptr<Packets> open_switch_sockets(const std::vector<SwitchSocket>& sockets,
                                             std::uint32_t mtu);

}  // namespace ghostrank
