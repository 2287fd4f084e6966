// Input of the rendezvous port: greetings and frames, damaged, and cut into pieces as a network may
// cut them (the first byte gives their length). A decoded frame must encode to one that decodes,
// and to the same bytes if all its fields are known.
#include <optional>
#include <string>

#include "emulator/control/frames.h"
#include "tests/fuzz/damage.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace ghostrank;

std::string sample() {
  Hello hello;
  hello.build = "1.0";
  hello.job_id = "job";
  hello.token = "secret";
  hello.hostname = "node1";
  hello.boot_id = "boot";
  hello.rank = 1;
  hello.size = 2;
  return encode(hello) + encode(Welcome{"node0", "boot"}) + encode(FrameType::heartbeat) +
         encode(FrameType::stop, BlobWriter().put(1u).put("why").bytes());
}

// Whether decoding takes all fields. Of a greeting of another protocol it takes only the number.
bool keeps_all(const Hello& hello) { return hello.protocol == kControlProtocol; }
bool keeps_all(const Welcome&) { return true; }

template <typename Decode>
bool understood(const Frame& frame, Decode decode) {
  const auto value = decode(frame);
  if (!value) return false;
  FrameBuffer buffer(2 * kMaxHelloBytes);
  buffer.add(encode(*value));
  const std::optional<Frame> again = buffer.next();
  fuzz::require(again && decode(*again));
  fuzz::require(!keeps_all(*value) || again->payload == frame.payload);
  return true;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string whole = sample();
  if (size == 0) return 0;
  const std::string bytes = fuzz::damaged(whole, data + 1, size - 1);
  const std::size_t piece = std::size_t{data[0]} + 1;
  FrameBuffer buffer(kMaxHelloBytes);
  int known = 0;
  for (std::size_t at = 0; at < bytes.size() && !buffer.broken(); at += piece) {
    buffer.add(std::string_view(bytes).substr(at, piece));
    while (const std::optional<Frame> frame = buffer.next()) {
      fuzz::require(frame->payload.size() < kMaxHelloBytes);
      known += understood(*frame, decode_hello) + understood(*frame, decode_welcome);
      BlobReader r(frame->payload);
      while (!r.bad() && !r.complete()) r.get<std::string>();
    }
  }
  fuzz::accepted += known >= 2;
  return 0;
}
