// Proves agents (agent.h) before a byte moves. The checker plays all parties of a communicator in
// virtual time: notes take 1 to 2 us, packets suffer the faults that the scheme claims to survive,
// ranks start their calls at random times. The seed alone decides a play. A play is right if
//
//   every rank reports done once in every call, and its tensor then holds what schedule.h's table
//   promises, for values that depend on seed, call, rank and element (small integers, exact sums);
//   notes go to other parties that exist, with content that fits; packets fit a datagram;
//   a wire format of the scheme's own (wire_format.h) carries every packet across unchanged;
//   if undisturbed, the traffic equals Ends::traffic(), by sender, receiver and carriage;
//   no event is left at the end, and the end comes within a limit of events.
//
// The checker trusts nothing an agent does and reports each defect with seed, event, party and
// call. A play is "undisturbed" if it has no misfortunes and no switch that fails, and either no
// timer fired or nothing could have caused one to fire: no pauses, no overlap, no slow notes, no
// refused sends.
//
// Units: picoseconds, bytes. Threading: pure. Cost: about 1 us per event, plus elements x ranks per
// call.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/agent.h"

namespace ghostrank {

// Probability that a packet suffers each fault, drawn per receiver: 0 never, 1 always. Delayed
// packets keep their order; reordered ones do not.
struct Misfortunes {
  double loss = 0, duplicates = 0, delay = 0, reordering = 0;
};

// Faults of parties that are switches. A switch that fails forgets everything.
struct SwitchFaults {
  double failure = 0;      // probability that it fails before it takes a note
  Picoseconds away = 0;    // a failed switch loses all notes for a random time up to this
  std::uint64_t gone = 0;  // after this many notes it loses all later ones; 0: it does not
};

struct AgentCheckOptions {
  std::uint64_t seed = 1;
  Misfortunes misfortunes{};  // faults that Ends::survives() does not claim are switched off
  SwitchFaults switches{};    // likewise
  double no_room = 0;         // probability that a send is refused
  double slow = 0;            // probability that a reliable note is delayed; it keeps its order
  Picoseconds pause = 0;      // a rank waits at most this long before a call
  int overlap = 1;            // calls that a rank may have open at the same time
  bool real_data = true;      // false: tensors have no elements to read, as in runs without verify
  std::uint64_t datagram_bytes = 8'900;  // the largest packet
  std::uint64_t most_events = 1'000'000;
};

struct AgentReport {
  bool ok = false;
  std::string error;  // the first defect found; empty when ok
  // Location of the defect, as far as it has one; negative: unknown.
  struct Where {
    std::uint64_t seed = 0, event = 0;
    GroupParty party = -1;
    std::int64_t call = -1;
  } at;
  std::uint64_t events = 0;
  std::uint64_t packets = 0;  // counted per receiver
  std::uint64_t lost = 0, doubled = 0, late = 0, overtaken = 0;
  std::uint64_t refused = 0;                // refused sends
  std::uint64_t failures = 0, unheard = 0;  // of switches; notes that came to one that was away
  std::uint64_t restarts = 0, fallbacks = 0, ring_calls = 0;  // that ranks reported (Incident)
};

// Plays once. The ranks make the calls in the order given. The calls' numbers must differ, and
// their groups must have ends.size() ranks. float16 sums are exact up to 2,048 ranks, bfloat16 sums
// up to 256; larger groups are an error.
AgentReport check(const Ends& ends, std::span<const Call> calls, AgentCheckOptions options = {});

// Whether a claim of Ends::survives() holds.
struct Claim {
  std::string_view misfortune;  // "loss", "duplicates", "delay", "reordering"
  bool claimed = false;
  int plays = 0;
  std::uint64_t met = 0;  // packets that suffered the fault
  AgentReport report;     // of the failed play, else of the last

  bool holds() const { return claimed && report.ok; }
  std::string text() const;  // "not claimed", "holds: ...", "does not hold: ..."
};

// Tests each claim with `seeds` seeds, from options.seed on, with that fault alone.
std::array<Claim, 4> check_claims(const Ends& ends, std::span<const Call> calls, int seeds,
                                  AgentCheckOptions options = {});

struct AgentProof {
  AgentReport report;   // of the failed play, else of the last
  int plays = 0;        // 0: the scheme refuses every data type
  std::string refused;  // reason for the last refused data type
};

// Plays several calls like `c` (roots rotate) `plays` times. The plays vary data types, pauses,
// overlap, refused sends and all claimed faults, together and alone; in some, switches fail,
// where that is claimed. If `c` sums, about every other play uses sparse tensors, of various
// densities, block sizes and overlaps.
AgentProof prove(const Ends& ends, Collective c, int plays);

// `calls` calls like `c`, numbered from `first` on; their roots rotate.
std::vector<Call> calls_like(const Collective& c, DataType type, int calls,
                             std::uint32_t first = 0);

}  // namespace ghostrank
