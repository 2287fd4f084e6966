// The seam between the engine and a network that may lose what it is given: datagrams, beside
// Fabric (fabric/fabric.h), whose promise is never weakened. Non-blocking, one owner.
//
// Datagrams leave over ways, numbered from 0 and set up before the first one. A datagram arrives
// whole, or not at all; it may arrive twice, and before one that was sent earlier. It is never cut:
// with its header and those of the network it is no larger than the MTU. What arrives carries the
// nonce of the run; everything else is dropped and counted. Datagrams that were handed over between
// two calls of flush() may leave together.
//
// Units: bytes of payload, without the header of wire.h. Errors: what the network refuses is
// counted as lost; failure() tells of what can never work. Threading: every call comes from the
// owner's thread (a shard).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emulator/fabric/wire.h"

namespace ghostrank {

struct PacketStats {
  std::uint64_t sent = 0;      // taken by the kernel
  std::uint64_t received = 0;  // handed over by poll()
  std::uint64_t strays = 0;    // of another run or malformed: dropped
  std::uint64_t refused = 0;   // not let out by the kernel (a firewall, no route): lost
  std::uint64_t again = 0;     // times there was no room
  // Arrivals for which the kernel had no room; what it had joined counts as one. Empty: unreadable.
  std::optional<std::uint64_t> dropped;
};

class Packets {
 public:
  virtual ~Packets() = default;

  // Takes the datagram (moves it out), to leave at the next flush() or before; false: no room now,
  // and it stays with the caller, untouched. Its payload is synthetic where it is null.
  virtual bool try_send(int way, Message& datagram) = 0;

  // Hands over what was taken. What finds no room stays, and is tried again by the next call.
  virtual void flush() = 0;

  // Appends what has arrived; returns how many. Of the payload it keeps what is always real
  // (Header::number bytes of words), in verify mode all.
  virtual int poll(std::vector<Message>& arrived) = 0;

  // Readable when something has arrived; one descriptor as long as this lives.
  virtual int wait_fd() const = 0;

  // True when everything taken has left.
  virtual bool idle() const = 0;

  // The largest payload of a datagram.
  virtual std::uint64_t most_bytes() const = 0;

  // Not empty once it has failed for good: what, and what to do.
  virtual const std::string& failure() const = 0;

  // Since it was opened. Asks the kernel: not for every pass of a loop.
  virtual PacketStats stats() const = 0;
};

}  // namespace ghostrank
