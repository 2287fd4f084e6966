// Frames of the control plane and the sockets that carry them. Private to control*.
//
//   frame    = length (4 bytes: of what follows) | type (1 byte) | payload
//
// A payload is put and taken as a blob (emulator/common/blob.h); the magic of a greeting tells
// other byte orders apart.
//
// Invariant: nothing is allocated by a length that a peer claims; what has arrived is kept, and a
// claim beyond the limit of the connection ends it.
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
  hello = 1,    // other -> 0: Hello
  welcome,      // 0 -> other: Welcome, when all have come
  refused,      // 0 -> other: text, why
  ping,         // other -> 0: its clock
  pong,         // 0 -> other: the clock of the ping, own clock
  gather,       // other -> 0: blob
  gathered,     // 0 -> other: rank, blob; one frame per rank
  publish,      // other -> 0: blob
  stop,         // both ways: Stop, text
  heartbeat,    // both ways, every second
  goodbye,      // both ways: last frame but acknowledgements
  goodbye_ack,  // both ways
  told,         // 0 -> other: number
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
std::optional<Hello> decode_hello(const Frame& frame);  // empty: not one
std::optional<Welcome> decode_welcome(const Frame& frame);

// What has arrived on one connection and was not yet taken.
class FrameBuffer {
 public:
  explicit FrameBuffer(std::size_t limit) : limit_(limit) {}
  void set_limit(std::size_t limit) { limit_ = limit; }

  // Reads what is there, at most once; false: the connection has ended.
  bool receive(int fd);
  void add(std::string_view arrived);
  // The next whole frame, if any.
  std::optional<Frame> next();
  bool broken() const { return broken_; }  // a length beyond the limit

 private:
  std::size_t limit_;
  std::string bytes_;
  std::size_t taken_ = 0;
  bool broken_ = false;
};

using Bytes = std::shared_ptr<const std::string>;

// A frame or a blob that waits costs about so much more than its bytes.
inline constexpr std::size_t kWaitingBytes = 64;

// Frames that wait until a peer reads, in order. Bounds: kMaxUnsentBytes and, beside them, what is
// bounded by its sender: stop and goodbye come once, of gathered frames one round (who takes part
// in the next all_gather has read the round before).
class SendQueue {
 public:
  // False, and not queued: the peer lets too much wait.
  [[nodiscard]] bool push(Bytes frame);
  bool empty() const { return frames_.empty(); }
  bool holds_gathered() const { return gathered_ > 0; }
  // Of the first frame, what is still to be sent; not of an empty queue.
  std::string_view front() const;
  void sent(std::size_t bytes);
  void clear();

 private:
  static bool counts(FrameType type);

  std::deque<Bytes> frames_;
  std::size_t offset_ = 0;  // of the first
  std::size_t gathered_ = 0;
  std::size_t waiting_bytes_ = 0;  // of frames that count
};

// The difference of two clocks from pings: the round with the shortest way there and back counts
// (half of its length bounds the error).
class ClockEstimate {
 public:
  // Sent at `sent` and answered at `answered` of the other clock, back at `received`.
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
