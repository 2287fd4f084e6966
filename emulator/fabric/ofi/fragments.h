// Cuts messages into fragments and reassembles them. Pure; knows nothing of libfabric.
//
//   message of 2.5 MiB  ->  [header 0 | 1 MiB] [header 1 | 1 MiB] [header 2 | 0.5 MiB]
//
// On the wire only, Header.offset holds three fields: the flow as its receiver numbers it (20
// bits), the fragment's number in its flow and direction (24 bits, modulo) and its index in the
// message (20 bits; its byte offset is index * kFragmentBytes). The number keeps the order, because
// a provider may complete a small fragment before a large one that was sent earlier (rendezvous
// protocols do).
//
// Units: bytes. Errors: a malformed arrival is a stray. Threading: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "emulator/fabric/ofi/frames.h"
#include "emulator/fabric/ofi/ofi.h"
#include "emulator/fabric/wire.h"

namespace ghostrank {

struct Envelope {
  std::uint32_t flow = 0;    // as its receiver numbers it
  std::uint32_t number = 0;  // fragment's number in its flow and direction, modulo kNumbers
  std::uint32_t index = 0;   // fragment's index in its message
};
inline constexpr std::uint32_t kMaxFlows = 1u << 20;  // per shard
inline constexpr std::uint32_t kNumbers = 1u << 24;
inline constexpr std::uint64_t kMaxMessageBytes = kFragmentBytes << 20;

// A sender keeps the numbers of a flow's unfinished fragments within kWindow, so a receiver holds
// fewer than kAhead fragments that came before their turn.
inline constexpr std::uint32_t kWindow = 64;
inline constexpr std::uint32_t kAhead = 4 * kWindow;

std::uint64_t pack(const Envelope& envelope);
Envelope unpack(std::uint64_t offset);

std::uint64_t fragments_of(std::uint64_t message_bytes);  // at least 1: the header travels alone
std::uint64_t fragment_bytes(std::uint64_t message_bytes, std::uint64_t index);

// Reassembles the arriving messages of all flows.
class Reassembly {
 public:
  Reassembly(std::uint64_t nonce, std::size_t flows, bool keep_payload,
             std::uint64_t frame_bytes = kMostFrameBytes)
      : nonce_(nonce), keep_payload_(keep_payload), frame_bytes_(frame_bytes), flows_(flows) {}

  enum class Verdict { taken, stray, no_memory };
  // Takes one arrival of `received` bytes, header included. Appends the messages that it completes.
  // A stray changes nothing. Reads `payload` only of a frame, or to keep it.
  Verdict accept(const Header& wire, std::size_t received, const std::byte* payload,
                 std::vector<Message>& ready);

 private:
  struct Fragment {
    Header header;
    std::uint32_t index = 0;
    Payload payload;
  };
  struct Incoming {
    std::uint32_t expected = 0;               // number of the next fragment
    std::map<std::uint32_t, Fragment> early;  // by number
    Message partial;
    std::uint64_t arrived = 0;  // fragments of `partial` that have arrived
  };

  bool plausible(const Header& wire, std::size_t received, const Envelope& envelope) const;
  Verdict take_frame(Incoming& flow, const Header& header, std::uint32_t index,
                     const std::byte* payload, std::vector<Message>& ready);
  Verdict take(Incoming& flow, const Header& header, std::uint32_t index, const std::byte* payload,
               std::vector<Message>& ready);

  std::uint64_t nonce_;
  bool keep_payload_;
  std::uint64_t frame_bytes_;
  std::vector<FramedMessage> framed_;  // of the current frame
  std::vector<Incoming> flows_;
};

}  // namespace ghostrank
