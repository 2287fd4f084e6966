// The library "gloo": how its collectives cut a buffer, as its source computes it, and what a
// message costs on the wire besides its payload.
//
// Ring all-reduce and reduce work in segments of at most 1 MiB, at least two per rank, equally many
// for every rank. A rank's segments are its chunk. The last segments may be short or lie beyond the
// buffer, and those are not sent.
//
// A rank that receives posts a buffer and tells the sender so (NOTIFY_RECV_READY); data leaves when
// both the send and the receive are there. So all rows but halving-doubling, whose buffers are
// known from the start, need permission (Posting of schedule.h). What tells travels on the
// connection that both directions share, behind data that left before: two ranks that send each
// other blocks take turns if one begins the call later than the other's permission arrives.
//
// Units: elements, unless the name says bytes. Threading: pure functions.
#pragma once

#include <cstdint>

#include "collectives/schedule.h"

namespace ghostrank {

inline constexpr std::uint64_t kGlooMaxSegmentBytes = 1 << 20;

// Bytes of gloo's TCP transport around one message, on its connection. They are no payload, and not
// in a schedule: data frames start with a preamble, the sender announces a message and the receiver
// says, in the other direction, that it may come.
struct GlooFraming {
  std::uint32_t preamble_bytes = 48;
  std::uint32_t send_ready_bytes = 48;  // sender to receiver, before the data
  std::uint32_t recv_ready_bytes = 48;  // receiver to sender
};
inline constexpr GlooFraming kGlooFraming;

struct GlooSegments {
  std::uint64_t elements = 0;  // of one segment
  std::uint64_t per_rank = 0;
  std::uint64_t all = 0;  // in all chunks, those beyond the buffer included
};

GlooSegments gloo_all_reduce_segments(const Collective& c);
GlooSegments gloo_reduce_segments(const Collective& c);

// Halving-doubling all-reduce: chunks of equal size, the last ones cut at the end of the buffer or
// beyond it, and what a notification takes in whole elements.
inline constexpr std::uint32_t kGlooNotificationBytes = 4;
struct GlooHalvingCut {
  std::uint64_t elements = 0;  // of one chunk
  std::uint64_t chunks = 0;
  std::uint64_t notification = 0;
};

GlooHalvingCut gloo_halving_cut(const Collective& c);

std::unique_ptr<Schedule> make_gloo_ring(const Collective& c, const Communicator& comm);
std::unique_ptr<Schedule> make_gloo_halving(const Collective& c, const Communicator& comm);

}  // namespace ghostrank
