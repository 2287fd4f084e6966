// ATP (NSDI'21) as a scheme: an all-reduce whose packets switches add up where they have an
// aggregator free, and a parameter server where they have none.
//
//   worker ── packet ──► switch: aggregator free, or this packet's? ── complete ──► server
//                               └ another packet's: passes as it is ─────────────► server
//   worker ◄── result, to all ── switch, which frees the aggregator ◄── result ─── server
//
// A node's ranks first add up over NVLink (rails.h). Each rail has a switch and a server of its
// own; communicators on one switch share its aggregators, first come, first served. h: the share of
// the packets that are aggregated; n: workers; S: bytes of packets. The server receives (h + n
// (1-h)) S, and an all-reduce takes max(1, h + n (1-h)) times as long as S takes on a link, if the
// server's NIC is like the workers'.
//
// Exact for int32. Floats travel as millionths in int32; where a number or a sum is too large for
// that, the server asks for the elements as they are (int32, or float32) and adds them itself.
// Infinities and NaN take that way, too. An addition that overflows is marked and stays so, which
// the original's saturating registers do not do. A packet has 62 elements and 26 bytes of header,
// as the original's; its fields are laid out in another way.
//
// Source: the behaviour of in-ATP/ATP. Left out: its congestion control, and two levels of
// switches. Never compared with a run on a Tofino. Threading: immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/agent.h"
#include "collectives/schemes/shared/held_bytes.h"

namespace ghostrank {

struct AtpOptions {
  int window = 512;        // packets of a worker in flight, each with an aggregator of its own
  int aggregators = 8192;  // of a switch, for all its communicators
  Picoseconds timeout = 10'000'000'000;  // a worker resends a packet after this time; 10 ms
  double packet_rate = 0;                // packets per second that a switch takes; 0: unlimited
  // Number of the first packet, a multiple of the window. Tests begin where numbers soon wrap.
  std::uint32_t first_packet = 0;
};

// What the communicators on one switch share.
struct AtpAggregators {
  struct Cell {
    int job = -1;  // -1: free
    std::uint32_t sequence = 0, workers = 0;
    bool overflow = false;
    std::vector<std::int32_t> values;  // empty without real data
  };
  std::vector<Cell> cells;
  HeldBytes held;  // reported by the communicator that comes first
  int jobs = 0;
  std::uint64_t aggregated = 0, passed = 0;  // packets that left complete, and as they came
};

// Throws std::invalid_argument for more than 32 workers on a rail.
std::unique_ptr<Ends> atp_ends(int ranks, const AtpOptions& options, const Communicator& comm = {});

}  // namespace ghostrank
