// A frame of three small messages, damaged: alone, and as a fragment that the data endpoint takes.
#include <cstring>
#include <string>
#include <vector>

#include "emulator/fabric/ofi/fragments.h"
#include "emulator/fabric/ofi/frames.h"
#include "tests/fuzz/damage.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace ghostrank;

constexpr std::uint64_t kNonce = 0x74736f6867;  // "ghost"

std::string sample() {
  std::vector<std::byte> frame(kMostFrameBytes);
  std::size_t used = 0;
  for (const std::uint64_t bytes : {8, 0, 100}) {
    Message m;
    m.header.bytes = bytes & kMostBytes;
    m.header.kind = bytes == 0 ? MessageKind::credit : MessageKind::data;
    used = append_to_frame(frame.data(), used, frame.size(), m);
  }
  return {reinterpret_cast<const char*>(frame.data()), used};
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string whole = sample();
  std::string bytes = fuzz::damaged(whole, data, size);
  if (bytes.size() > kMostFrameBytes) bytes.resize(kMostFrameBytes);
  const std::vector<std::byte> frame(reinterpret_cast<const std::byte*>(bytes.data()),
                                     reinterpret_cast<const std::byte*>(bytes.data()) +
                                         bytes.size());  // on the heap: ASan guards its end
  std::vector<FramedMessage> messages;
  const bool good = parse_frame(frame, messages);
  fuzz::require(good != messages.empty());
  std::size_t covered = 0;
  for (const FramedMessage& framed : messages) {
    fuzz::require(framed.bytes == framed.header().bytes && framed.header().kind != kFrameKind);
    covered += sizeof(Header) + framed.payload().size();
  }
  fuzz::require(!good || covered == frame.size());

  for (const bool keep : {false, true}) {
    Reassembly reassembly(kNonce, 1, keep);
    std::vector<Message> ready;
    Header h;
    h.nonce = kNonce;
    h.kind = kFrameKind;
    h.bytes = frame.size() & kMostBytes;
    h.offset = pack({0, 0, 0});
    const auto verdict = reassembly.accept(h, sizeof h + frame.size(), frame.data(), ready);
    fuzz::require((verdict == Reassembly::Verdict::taken) == good);
    fuzz::require(ready.size() == messages.size());
  }
  fuzz::accepted += good && messages.size() == 3;
  return 0;
}
