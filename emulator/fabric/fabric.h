// The seam between the engine and a real network: NCCL's net contract, shortened. Non-blocking, one
// owner.
//
// A Fabric belongs to one thread (a shard); every call but wake() comes from that thread. It
// carries messages over flows (numbered from 0, set up before the first message) and promises: no
// loss, no duplication, and order per flow and direction. "No room" (try_send returns false) means:
// call poll() and come back. A false try_send leaves the message with the caller, untouched.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "emulator/fabric/wire.h"

namespace ghostrank {

// A longer message moves in pieces of this size, each of which is progress.
inline constexpr std::uint64_t kFragmentBytes = 1 << 20;

struct FabricStats {
  std::uint64_t messages_sent = 0,
                messages_received = 0;               // whole messages, probes and credits included
  std::uint64_t bytes_sent = 0, bytes_received = 0;  // payload
  std::uint64_t strays = 0;                          // wrong nonce or malformed: dropped
  std::uint64_t moved = 0;                           // pieces of messages that left or came
  std::uint64_t again = 0;                           // times the provider had no room
};

class Fabric {
 public:
  virtual ~Fabric() = default;

  // Takes the message (moves it out) and sends it over `flow`; false: no room now, nothing changed.
  virtual bool try_send(int flow, Message& message) = 0;

  // Drives progress; appends what has completely arrived. Returns how many were appended.
  virtual int poll(std::vector<Message>& arrived) = 0;

  // Blocks until something may have arrived, wake() is called, or the time has passed. Stays awake
  // first for `spin`, or longer while transfers follow each other; without `spin` not at all.
  // Returns early spuriously at will.
  virtual void wait(std::chrono::nanoseconds timeout, std::chrono::nanoseconds spin) = 0;

  // A wait() also ends while `descriptor` is readable; one, which outlives the last wait.
  virtual void watch(int descriptor) = 0;

  // From any thread: makes a current or the next wait() return.
  virtual void wake() = 0;

  // True when everything accepted has left this process (its buffers are free again).
  virtual bool idle() const = 0;

  // Not empty once the fabric has failed for good (a completion in error): what, to whom, what to
  // do.
  virtual const std::string& failure() const = 0;

  virtual FabricStats stats() const = 0;
};

}  // namespace ghostrank
