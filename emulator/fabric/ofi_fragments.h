// Fragments on the wire and their way back to whole messages; pure, knows nothing of libfabric.
//
//   message of 2.5 MiB  ->  [header 0 | 1 MiB] [header 1 | 1 MiB] [header 2 | 0.5 MiB]
//
// Header.offset carries, on the wire only: the flow, as its receiver numbers it (20 bits), the
// fragment's number within its flow and direction (24 bits, modulo) and its index within the
// message (20 bits; its byte offset is index * kFragmentBytes). Order rests on the number: a
// provider may complete a small fragment before a large one that was sent earlier (rendezvous
// protocols do).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "emulator/fabric/ofi.h"
#include "emulator/fabric/ofi_frames.h"
#include "emulator/fabric/wire.h"

namespace ghostrank {

struct Envelope {
  std::uint32_t flow = 0;    // as its receiver numbers it
  std::uint32_t number = 0;  // of the fragment in its flow and direction, modulo kNumbers
  std::uint32_t index = 0;   // of the fragment in its message
};
inline constexpr std::uint32_t kMaxFlows = 1u << 20;  // of one shard
inline constexpr std::uint32_t kNumbers = 1u << 24;
inline constexpr std::uint64_t kMaxMessageBytes = kFragmentBytes << 20;

// A sender keeps the numbers of its unfinished fragments in one flow within this many; a
// receiver therefore holds fewer than kAhead that came before their turn.
inline constexpr std::uint32_t kWindow = 64;
inline constexpr std::uint32_t kAhead = 4 * kWindow;

std::uint64_t pack(const Envelope& envelope);
Envelope unpack(std::uint64_t offset);

std::uint64_t fragments_of(std::uint64_t message_bytes);  // at least 1: the header travels alone
std::uint64_t fragment_bytes(std::uint64_t message_bytes, std::uint64_t index);

// The arriving side of all flows.
class Reassembly {
 public:
  Reassembly(std::uint64_t nonce, std::size_t flows, bool keep_payload,
             std::uint64_t frame_bytes = kMostFrameBytes)
      : nonce_(nonce), keep_payload_(keep_payload), frame_bytes_(frame_bytes), flows_(flows) {}

  enum class Verdict { taken, stray, no_memory };
  // One arrival of `received` bytes, header included. Appends the messages that it completes. A
  // stray changes nothing. `payload` is looked at only in a frame, or to keep it.
  Verdict accept(const Header& wire, std::size_t received, const std::byte* payload,
                 std::vector<Message>& ready);

 private:
  struct Fragment {
    Header header;
    std::uint32_t index = 0;
    Payload payload;
  };
  struct Incoming {
    std::uint32_t expected = 0;               // number
    std::map<std::uint32_t, Fragment> early;  // by number
    Message partial;
    std::uint64_t arrived = 0;  // fragments of `partial`
  };

  bool plausible(const Header& wire, std::size_t received, const Envelope& envelope) const;
  Verdict take_frame(Incoming& flow, const Header& header, std::uint32_t index,
                     const std::byte* payload, std::vector<Message>& ready);
  Verdict take(Incoming& flow, const Header& header, std::uint32_t index, const std::byte* payload,
               std::vector<Message>& ready);

  std::uint64_t nonce_;
  bool keep_payload_;
  std::uint64_t frame_bytes_;
  std::vector<FramePart> parts_;  // of the frame at hand
  std::vector<Incoming> flows_;
};

}  // namespace ghostrank
