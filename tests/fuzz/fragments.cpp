// Input of the data endpoint, from strangers as from the job's own processes: the fragments of some
// messages as records (header, number of bytes that arrived), damaged.
#include "emulator/fabric/ofi/fragments.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tests/fuzz/damage.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace ghostrank;

constexpr std::uint64_t kNonce = 0x74736f6867;  // "ghost"
constexpr std::uint32_t kProcesses = 3;
constexpr std::uint64_t kLargest = 4
                                   << 20;  // a header may claim more than a test wants to allocate

struct Arrival {
  Header header;
  std::uint64_t bytes = 0;
};

// Each process sends a message of two fragments and one without payload; the first two fragments
// are swapped.
std::string sample() {
  std::vector<Arrival> arrivals;
  for (std::uint32_t source = 0; source < kProcesses; ++source) {
    std::uint32_t number = 0;
    for (const std::uint64_t bytes : {kFragmentBytes + 100, std::uint64_t{0}}) {
      for (std::uint32_t index = 0; index < fragments_of(bytes); ++index) {
        Arrival a;
        a.header.nonce = kNonce;
        a.header.bytes = bytes & kMostBytes;
        a.header.offset = pack({source, number++, index});
        a.bytes = sizeof(Header) + fragment_bytes(bytes, index);
        arrivals.push_back(a);
      }
    }
  }
  std::swap(arrivals[0], arrivals[1]);
  return {reinterpret_cast<const char*>(arrivals.data()), arrivals.size() * sizeof(Arrival)};
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string whole = sample();
  static const std::vector<std::byte> payload(kFragmentBytes);
  const std::string bytes = fuzz::damaged(whole, data, size);
  Reassembly reassembly(kNonce, kProcesses, true);
  std::vector<Message> ready;
  for (std::size_t at = 0; at + sizeof(Arrival) <= bytes.size(); at += sizeof(Arrival)) {
    Arrival a;
    std::memcpy(static_cast<void*>(&a), bytes.data() + at, sizeof a);
    a.header.bytes = std::min<std::uint64_t>(a.header.bytes, kLargest) & kMostBytes;
    a.bytes = std::min(a.bytes, sizeof(Header) + kFragmentBytes);
    const std::size_t before = ready.size();
    const auto verdict = reassembly.accept(a.header, a.bytes, payload.data(), ready);
    fuzz::require(verdict != Reassembly::Verdict::stray || ready.size() == before);
  }
  for (const Message& message : ready) {
    fuzz::require(message.header.nonce == kNonce && message.header.bytes <= kLargest);
    fuzz::require((message.payload != nullptr) == (message.header.bytes > 0));
  }
  fuzz::accepted += ready.size() == 2 * std::size_t{kProcesses};
  return 0;
}
