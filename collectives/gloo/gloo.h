// The library "gloo": how its collectives cut a buffer, computed as in gloo's source, and the bytes
// that a message costs on the wire besides its payload.
//
// Ring all-reduce and reduce work in segments of at most 1 MiB, at least two per rank and equally
// many for every rank. A rank's segments are its chunk. The last segments may be short or lie
// beyond the end of the buffer; gloo does not send the latter.
//
// A receiver posts a buffer and announces it to the sender (NOTIFY_RECV_READY); the data leaves
// when both the send and the receive are posted. So all rows need permissions (Posting in
// schedule.h), except halving-doubling, whose buffers are known from the start. An announcement
// uses the TCP connection that both directions share and queues behind data sent earlier. Therefore
// two ranks that send each other blocks take turns if one of them begins the call after the other's
// permission has arrived.
//
// Units: elements, unless the name says bytes. Threading: pure functions.
#pragma once

#include <cstdint>

#include "collectives/schedule.h"

namespace ghostrank {

inline constexpr std::uint64_t kGlooMaxSegmentBytes = 1 << 20;

// Bytes that gloo's TCP transport adds to one message on its connection. They are not payload and
// not part of a schedule. A data frame starts with a preamble; the sender announces the message;
// the receiver announces, in the other direction, that it may come.
struct GlooFraming {
  std::uint32_t preamble_bytes = 48;
  std::uint32_t send_ready_bytes = 48;  // sender to receiver, before the data
  std::uint32_t recv_ready_bytes = 48;  // receiver to sender
};
inline constexpr GlooFraming kGlooFraming;

struct GlooSegments {
  std::uint64_t elements = 0;  // of one segment; 0 if the buffer is empty
  std::uint64_t per_rank = 0;
  std::uint64_t all = 0;  // in all chunks, segments beyond the end of the buffer included
};

GlooSegments gloo_all_reduce_segments(const Collective& c);
GlooSegments gloo_reduce_segments(const Collective& c);

// The cut of a halving-doubling all-reduce: chunks of equal size, the last ones cut at the end of
// the buffer or beyond it, and the length of a notification, rounded up to whole elements.
inline constexpr std::uint32_t kGlooNotificationBytes = 4;
struct GlooHalvingCut {
  std::uint64_t elements = 0;  // of one chunk
  std::uint64_t chunks = 0;
  std::uint64_t notification = 0;
};

GlooHalvingCut gloo_halving_cut(const Collective& c);

// Throw std::invalid_argument as check_arguments() does (generic/textbook.h).
std::unique_ptr<Schedule> make_gloo_ring(const Collective& c, const Communicator& comm);
std::unique_ptr<Schedule> make_gloo_halving(const Collective& c, const Communicator& comm);

}  // namespace ghostrank
