// The seam between the engine and a network that may lose messages: datagrams, beside Fabric
// (fabric/fabric.h), which never loses any. Non-blocking, one owner.
//
// Datagrams leave over flows, which are numbered from 0 and set up before the first datagram. A
// datagram arrives whole or not at all; it may arrive twice, and may overtake an earlier one. The
// network never fragments it: with its own and the network's headers it fits the MTU. Arrivals
// carry the nonce of the run; all others are dropped and counted. Datagrams taken between two calls
// of flush() may leave together.
//
// Units: bytes of payload, without the header of fabric/wire.h. Errors: a datagram that the network
// refuses counts as lost; failure() describes what can never work. Threading: the owner's thread (a
// shard) makes every call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emulator/fabric/wire.h"

namespace ghostrank {

struct PacketStats {
  std::uint64_t sent = 0;      // the kernel took them
  std::uint64_t received = 0;  // handed over by poll()
  std::uint64_t strays = 0;    // from another run or malformed: dropped
  std::uint64_t refused = 0;   // the kernel refused them (a firewall, no route): lost
  std::uint64_t again = 0;     // times the kernel had no room
  // Arrivals that the kernel dropped for lack of room, joined datagrams counted as one; empty: the
  // kernel does not tell.
  std::optional<std::uint64_t> dropped;
};

class Packets {
 public:
  virtual ~Packets() = default;

  // Takes the datagram (moves it out), to leave at the next flush() or before. Returns false when
  // there is no room now; the caller keeps the datagram, unchanged. A null payload is synthetic.
  virtual bool try_send(int flow, Message& datagram) = 0;

  // Hands the taken datagrams to the kernel. Those that find no room stay for the next call.
  virtual void flush() = 0;

  // Appends the arrived datagrams; returns how many. Keeps the part of a payload that is always
  // real (Header::number bytes of words); in verify mode all of it.
  virtual int poll(std::vector<Message>& arrived) = 0;

  // Returns a descriptor that is readable when a datagram has arrived; it stays the same for this
  // object's life.
  virtual int wait_fd() const = 0;

  // True when every taken datagram has left.
  virtual bool idle() const = 0;

  // Returns the largest payload of a datagram.
  virtual std::uint64_t most_bytes() const = 0;

  // Not empty once it has failed for good: what failed, and what to do.
  virtual const std::string& failure() const = 0;

  // Counts since it was opened. Asks the kernel, so do not call it in every pass of a loop.
  virtual PacketStats stats() const = 0;
};

}  // namespace ghostrank
