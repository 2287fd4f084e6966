// The seam between the engine and a real network: NCCL's net contract (ncclNet_t), shortened.
// Non-blocking, one owner.
//
// A Fabric carries messages over flows, which are numbered from 0 and set up before the first
// message. It promises: no loss, no duplication, and order per flow and direction. When try_send
// returns false there is no room: call poll() and try again; the caller keeps the message,
// unchanged.
//
// Units: bytes of payload, without the header of wire.h. Errors: failure() describes what has
// failed for good. Threading: a Fabric belongs to one thread (a shard), which makes every call but
// wake().
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "emulator/fabric/wire.h"

namespace ghostrank {

// A longer message moves in fragments of this size; each one counts as progress.
inline constexpr std::uint64_t kFragmentBytes = 1 << 20;

struct FabricStats {
  std::uint64_t messages_sent = 0,
                messages_received = 0;               // whole messages, including probes and credits
  std::uint64_t bytes_sent = 0, bytes_received = 0;  // payload
  std::uint64_t bytes_waiting = 0;                   // of messages that have not left as a whole
  std::uint64_t strays = 0;                          // with the wrong nonce or malformed: dropped
  std::uint64_t moved = 0;                           // fragments that left or arrived
  std::uint64_t again = 0;                           // times the provider had no room
  std::uint64_t interrupted = 0;  // waits that EINTR ended, as after SIGSTOP and SIGCONT
};

class Fabric {
 public:
  virtual ~Fabric() = default;

  // Takes the message (moves it out) and sends it over `flow`. Returns false when there is no room
  // now; nothing has changed then.
  virtual bool try_send(int flow, Message& message) = 0;

  // Drives progress; appends the messages that have arrived completely. Returns how many.
  virtual int poll(std::vector<Message>& arrived) = 0;

  // Blocks until a message may have arrived, wake() is called, or `timeout` has passed. Spins first
  // for `spin`, or longer while transfers follow each other; with a `spin` of 0 it blocks at once.
  // May return early.
  virtual void wait(std::chrono::nanoseconds timeout, std::chrono::nanoseconds spin) = 0;

  // Makes wait() return also when `descriptor` is readable. Call it once; the descriptor must
  // outlive the last wait().
  virtual void watch(int descriptor) = 0;

  // From any thread: makes the current or the next wait() return.
  virtual void wake() = 0;

  // True when every accepted message has left this process, so that its buffers are free again.
  virtual bool idle() const = 0;

  // Not empty once the fabric has failed for good (a completion in error): what failed, to whom,
  // and what to do.
  virtual const std::string& failure() const = 0;

  virtual FabricStats stats() const = 0;
};

}  // namespace ghostrank
