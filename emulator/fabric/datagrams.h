// fabric.kind packets: messages in order and without loss over UDP datagrams, so that schedules and
// the schemes' packets have the same transport. fabric/reliable.h says how.
//
//   datagram   0-7 nonce | 8-11 flow, as the receiver numbers it | 12-15 packet number
//              16-19 acknowledged | 20 bit 0: begins with a message's header, bit 1: has a packet
//              24-31 acknowledged bits | the packet
//
// Every datagram acknowledges. The process sends one without a packet where it has none to send.
//
// Threading: as fabric.h says.
#pragma once

#include <memory>

#include "emulator/fabric/open.h"

namespace ghostrank {

std::unique_ptr<NetworkFabric> open_datagram_fabric(const FabricOptions& options);

}  // namespace ghostrank
