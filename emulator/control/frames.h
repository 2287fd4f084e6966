// Frames of the control plane and the sockets that carry them. Private to control/.
//
//   frame    = length (4 bytes, of the rest) | type (1 byte) | payload
//
// A payload is a blob (emulator/common/blob.h); that of refused, gather and publish is raw bytes. A
// greeting in another byte order does not decode.
//
// Invariant: a length that a peer claims allocates nothing; only bytes that have arrived are kept,
// and a claim beyond the connection's limit ends it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "emulator/common/blob.h"
#include "emulator/control/control.h"

namespace ghostrank {

enum class FrameType : std::uint8_t {
  hello = 1,    // others -> 0: Hello
  welcome,      // 0 -> others: Welcome, when all have come
  refused,      // 0 -> others: text, the reason
  ping,         // others -> 0: own clock
  pong,         // 0 -> others: the clock of the ping, own clock
  gather,       // others -> 0: blob
  gathered,     // 0 -> others: rank, blob; one frame per rank
  publish,      // others -> 0: blob
  stop,         // in both directions: Stop, text
  heartbeat,    // in both directions, every second
  goodbye,      // in both directions: the last frame except acknowledgements
  goodbye_ack,  // in both directions
  told,         // 0 -> others: number
};

struct Frame {
  FrameType type = FrameType::heartbeat;
  std::string payload;
};

inline constexpr std::size_t kMaxHelloBytes = 4096;
inline constexpr std::uint32_t kControlProtocol = 1;

struct Hello {
  std::uint32_t protocol = kControlProtocol;
  std::string build, job_id, token, hostname, boot_id;
  std::uint32_t rank = 0, size = 0;
};
struct Welcome {
  std::string hostname, boot_id;
};

std::string encode(FrameType type, std::string_view payload = {});
std::string encode(const Hello& hello);
std::string encode(const Welcome& welcome);
std::optional<Hello> decode_hello(const Frame& frame);  // empty: no greeting
std::optional<Welcome> decode_welcome(const Frame& frame);

// Bytes that have arrived on one connection and were not yet taken.
class FrameBuffer {
 public:
  explicit FrameBuffer(std::size_t limit) : limit_(limit) {}
  void set_limit(std::size_t limit) { limit_ = limit; }

  // Reads available bytes, at most once. False: the connection has ended.
  bool receive(int fd);
  void add(std::string_view arrived);
  // The next whole frame, if there is one.
  std::optional<Frame> next();
  bool broken() const { return broken_; }  // a claimed length exceeds the limit

 private:
  std::size_t limit_;
  std::string bytes_;
  std::size_t taken_ = 0;
  bool broken_ = false;
};

using Bytes = std::shared_ptr<const std::string>;

// What a waiting frame or blob costs besides its bytes, about.
inline constexpr std::size_t kWaitingBytes = 64;

// Frames that wait until a peer reads them, in order. Bound: kMaxUnsentBytes, plus frames that
// their senders bound: one stop, one goodbye and one round of gathered frames (a process joins the
// next all_gather only after it has read the round before).
class SendQueue {
 public:
  // False: not queued, because too much waits for the peer already.
  [[nodiscard]] bool push(Bytes frame);
  bool empty() const { return frames_.empty(); }
  bool holds_gathered() const { return gathered_ > 0; }
  // The unsent part of the first frame; the queue must not be empty.
  std::string_view front() const;
  void sent(std::size_t bytes);
  void clear();

 private:
  static bool counts(FrameType type);

  std::deque<Bytes> frames_;
  std::size_t offset_ = 0;  // bytes of the first frame that were sent
  std::size_t gathered_ = 0;
  std::size_t waiting_bytes_ = 0;  // of frames that count towards kMaxUnsentBytes
};

// The difference of two clocks, estimated from pings. The ping with the shortest round-trip time
// counts; half of that time bounds the error.
class ClockEstimate {
 public:
  // One ping: sent at `sent`, received at `received`, both on this clock; answered at `answered` on
  // the other.
  void add(std::int64_t sent, std::int64_t answered, std::int64_t received);
  int rounds() const { return rounds_; }
  std::int64_t offset_ns() const { return offset_; }  // this clock minus the other

 private:
  int rounds_ = 0;
  std::int64_t best_ = 0, offset_ = 0;
};

bool equal_in_constant_time(std::string_view a, std::string_view b);
std::string this_hostname();
std::string this_boot_id();

}  // namespace ghostrank
