// Proves agents (agent.h) before a byte moves. It plays all parties of a communicator in a small
// world of its own, in virtual time: notes take a microsecond or two, packets meet the misfortunes
// that the scheme claims to survive, ranks come to their calls when they like. A play is decided
// by its seed alone. It is right when
//
//   every rank says done once in every call, and its tensor is then as schedule.h's table promises,
//   for values that seed, call, rank and element decide (small whole numbers, so sums are exact);
//   notes go to others that exist, with content that fits; packets fit a datagram;
//   a wire format of the scheme's own (wire_format.h) brings every packet across as it was;
//   undisturbed, what was sent is what Ends::traffic() says, by sender, receiver and carriage;
//   nothing is left to happen in the end, and the end is reached within a bound of events.
//
// It trusts nothing an agent does; what is wrong is named with seed, event, party and call.
// "Undisturbed" is a play without misfortunes where no timer fired, or where nothing gave a timer
// a reason: no pauses, no overlap, no slow notes, no refused sends.
//
// Units: picoseconds, bytes. Threading: pure. Cost: a microsecond or so an event, and elements x
// ranks for every call.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/agent.h"

namespace ghostrank {

// How often a packet meets each, for every receiver anew: 0 never, 1 always. Late packets keep
// their order; overtaken ones do not.
struct Misfortunes {
  double loss = 0, duplicates = 0, delay = 0, reordering = 0;
};

struct AgentCheckOptions {
  std::uint64_t seed = 1;
  Misfortunes misfortunes{};  // those that Ends::survives() does not claim are left out
  double no_room = 0;         // how often a send is refused
  double slow = 0;            // how often a reliable note takes longer, in its order
  Picoseconds pause = 0;      // a rank waits up to so long before a call
  int overlap = 1;            // calls that a rank may have open at once
  bool real_data = true;      // false: tensors have no elements to read, as in runs without verify
  std::uint64_t datagram_bytes = 8'900;  // the most a packet may have
  std::uint64_t most_events = 1'000'000;
};

struct AgentReport {
  bool ok = false;
  std::string error;  // empty when ok; the first thing found wrong
  // Where that is, as far as it is in one place; less than 0: not known.
  struct Where {
    std::uint64_t seed = 0, event = 0;
    Party party = -1;
    std::int64_t call = -1;
  } at;
  std::uint64_t events = 0;
  std::uint64_t packets = 0;  // by receiver
  std::uint64_t lost = 0, doubled = 0, late = 0, overtaken = 0;
  std::uint64_t refused = 0;  // sends
};

// One play. The ranks make the calls in the order given; numbers must differ, groups be ends.size()
// large. bfloat16 is exact up to 256 ranks, float16 up to 2,048; more are an error.
AgentReport check(const Ends& ends, std::span<const Call> calls, AgentCheckOptions options = {});

// Whether a claim of Ends::survives() holds.
struct Claim {
  std::string_view misfortune;  // "loss", "duplicates", "delay", "reordering"
  bool claimed = false;
  int plays = 0;
  std::uint64_t met = 0;  // packets that met it
  AgentReport report;     // of the play that went wrong, else of the last

  bool holds() const { return claimed && report.ok; }
  std::string text() const;  // "not claimed", "holds: ...", "does not hold: ..."
};

// Tries each claim over so many seeds from options.seed on, with that misfortune alone.
std::array<Claim, 4> check_claims(const Ends& ends, std::span<const Call> calls, int seeds,
                                  AgentCheckOptions options = {});

struct AgentProof {
  AgentReport report;   // of the play that went wrong, else of the last
  int plays = 0;        // 0: every data type is refused
  std::string refused;  // why the last data type that is refused is
};

// Several calls like `c` (roots go around) in so many plays, which vary data types, pauses,
// overlap, refused sends and all misfortunes that are claimed, together and alone. Where `c` sums,
// every other play is of sparse tensors: of several densities, blocks and overlaps.
AgentProof prove(const Ends& ends, Collective c, int plays);

// As many calls like `c`, numbered from `first` on.
std::vector<Call> calls_like(const Collective& c, DataType type, int calls,
                             std::uint32_t first = 0);

}  // namespace ghostrank
