// How the workers of a rail go on when their switch stops answering: it has restarted and forgotten
// every round, or it is away.
//
// Workers number their packets over all calls. In a slot no worker is more than one packet ahead of
// another, because the switch answers a packet only when all workers have sent it. So when every
// worker has said which packet it completed last in each slot, the oldest packet that some lack is
// known: it is the last one of the workers that are ahead.
//
//   worker      a packet has waited for long                          suspect ─► speaker
//   speaker     (the worker of the first node)                        stop ─► all others
//   worker      leaves the switch alone from now on                   state ─► speaker
//   speaker     has all states and decides                            go ─► all others
//   worker      goes on; if the switch has failed, it gives what
//               it sent in the packets that some workers lack         part ─► speaker
//   speaker     adds up the parts of such a packet, as a switch does  sum ─► those that lack it
//
// After an agreement all workers have completed the same packets, each of them once. They go on
// under a new epoch: the number of a packet on the wire is its own number plus the epoch, so in
// each slot it is later than all numbers before. By these numbers workers ignore results, and
// guarded switches (switch/compiled/pool.h) packets, of earlier epochs. It does not matter which
// switches have really restarted.
//
// A switch has failed if it does not answer a packet that every worker has completed or sent long
// ago. A late worker is no failure. Notes between workers are reliable and keep their order.
//
// Threading: plain values and functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collectives/agent.h"

namespace ghostrank::switchml {

// Note::tag of notes between workers; those of packets are below.
//
//   suspect, stop    call: how many agreements the sender knows of
//   state, go        call: likewise; index: the first slot of those listed; words: SlotList
//   part, sum        index: the slot; words: Words of the packet, with its own number
//   ring + a trip    ring.h
inline constexpr std::uint8_t kSuspect = 16, kStop = 17, kState = 18, kGo = 19, kPart = 20,
                              kSum = 21, kRing = 24;

enum class Waiting : std::uint8_t { nothing, some, long_since };  // for the answer in a slot
enum class Decision : std::uint8_t {
  go_on,     // as before
  restart,   // under a new epoch
  fall_back  // without the switch
};

// A worker's state of a slot, or the agreed one.
struct SlotState {
  std::uint32_t completed = 0;  // the number of the last completed packet
  Waiting waiting{};            // in a state
  bool parts = false;  // agreed: some workers lack that packet, and the speaker wants its parts
};

// Slots that follow each other, as the words of a note.
struct SlotList {
  // In a state: for how many ticks the worker has waited and heard nothing. In the agreed list:
  // after how many ticks a packet without an answer makes workers suspect the switch.
  std::uint32_t ticks = 0;
  Decision decision{};  // in the agreed list
  std::vector<SlotState> slots;

  static constexpr std::size_t kMost = 800;  // slots of a note
  std::vector<std::byte> bytes(std::size_t first, std::size_t count) const;
  // Adds the slots of a note. Returns false if it is malformed.
  bool add(std::span<const std::byte> bytes);
};

// The states of all workers, and what follows from them.
class Agreement {
 public:
  Agreement(int workers, int slots) : states_(workers), slots_(static_cast<std::size_t>(slots)) {}

  // The state of a worker, or the next part of it; ignores malformed ones.
  void add(int worker, std::span<const std::byte> bytes) { states_[worker].add(bytes); }
  bool whole() const;
  // Requires whole(). `fallback`: ticks of silence after which the switch is given up; 0: it never
  // is. Leaves SlotList::ticks to the caller.
  SlotList decide(std::uint32_t fallback) const;
  // The workers that lack the slot's last packet, which others have completed.
  std::vector<int> lacking(std::size_t slot) const;

 private:
  std::uint32_t latest(std::size_t slot) const;
  bool failed(std::size_t slot) const;

  std::vector<SlotList> states_;
  std::size_t slots_;
};

}  // namespace ghostrank::switchml
