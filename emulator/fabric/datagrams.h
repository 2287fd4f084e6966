// fabric.kind packets: messages in order and without loss over UDP datagrams, so that schedules and
// the schemes' packets have the same transport. fabric/reliable.h says how.
//
//   datagram   0-7 nonce | 8-11 flow, as the receiver numbers it | 12-15 packet number
//              16-19 packet awaited | 20 bit 0: begins with a message's header, bit 1: has a packet
//              24-31 bit i: packet awaited + 1 + i has come | the packet
//
// Every datagram acknowledges. Where no data is due, one without a packet leaves.
//
// Threading: as fabric.h says.
#pragma once

#include <memory>

#include "emulator/fabric/open.h"

namespace ghostrank {

std::unique_ptr<NetworkFabric> open_datagram_fabric(const FabricOptions& options);

// The rate at which bytes of messages pass under a cap if IP packets have at most `mtu` bytes.
double datagram_stream_bps(const SendCap& cap, std::uint32_t mtu);

}  // namespace ghostrank
