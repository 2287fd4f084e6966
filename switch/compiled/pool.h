// The slots of one job: SwitchML's state machine, apart from packets and ports.
//
// Slot s has two sets. A set collects one chunk of every worker; meanwhile the other set keeps the
// previous sum for workers that lost its result. Nothing is ever cleared: the first chunk of a
// round overwrites the sum, and a worker's chunk in one set removes its mark from the other.
//
//   before = marks[set];  marks[set] |= worker;  marks[other] &= ~worker
//   before == 0       values = chunk             (exponents likewise)
//   worker is new     values += chunk            (exponents: maximum)
//   worker is not     nothing: a retransmission
//   missing = before the first chunk 0, else the number of workers still to come
//
// The sums are exact only if the chunks of one worker for one slot arrive in the order in which
// they were sent: an old chunk that comes after a newer one counts as new. A guarded pool goes by
// the packets' numbers, and any order will do: a round is the chunks of one number in one set.
//
//   number earlier than the set's round   an old chunk: nothing
//   the same                              as above
//   later                                 the next round begins, whatever this one has left
//
// No mark is removed from the other set. So a sum never has chunks of different numbers, nor two of
// one worker; workers may leave a round unfinished, and a pool may be made in place of one that has
// stopped.
//
// A leaf's guarded pool also keeps the answer of the switch above to a complete round, in place of
// its sum, until the next round begins.
//
// A guarded pool needs workers that number their packets alike and across all jobs, modulo 2^32;
// workers whose numbers begin again at each job (as in p4lang/p4app-switchML) cannot use one. If
// packets keep their order, a guarded pool gives the same results as an unguarded one.
//
// Threading: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "switch/wire/switchml.h"

namespace ghostrank::switchml {

enum class Verdict : std::uint8_t {
  collect,     // added; not complete yet
  duplicate,   // a retransmission of an incomplete round, or an old chunk: do nothing
  broadcast,   // the last chunk of the round: send the result to every worker
  retransmit,  // a retransmission of a complete round: send the result to its sender
};

class Pool {
 public:
  // workers 1 .. kMaxWorkers; slots 1 .. kMaxSlots; elements 32, 64 or 256. These are asserted,
  // because reason_to_refuse() has checked the job.
  Pool(int workers, int slots, int elements, bool guarded = false);

  int workers() const { return workers_; }
  int slots() const { return slots_; }
  int elements() const { return elements_; }

  // Takes a chunk. Requires slot < slots(), worker < workers(), and elements() values, or none,
  // which count as 0.
  Verdict receive(int worker, int slot, const Packet& packet);

  // Keeps the answer from above if it is that of a complete round. Requires a guarded pool.
  void keep(int slot, const Packet& answer);
  // Whether the answer to this packet's round is kept; then values(), e0() and e1() return it.
  bool answered(int slot, const Packet& packet) const {
    const Round& round = rounds_[at(slot, packet.set)];
    return round.answered && round.id == packet.id;
  }

  // The result of a round; valid after the verdict broadcast or retransmit.
  const std::int32_t* values(int slot, int set) const {
    return values_.data() + at(slot, set) * size_();
  }
  // Whether a chunk of the round had values, and the least Packet::next of its chunks.
  bool has_values(int slot, int set) const { return rounds_[at(slot, set)].has_values; }
  std::uint32_t next(int slot, int set) const { return rounds_[at(slot, set)].next; }
  std::int8_t e0(int slot, int set) const { return rounds_[at(slot, set)].e0; }
  std::int8_t e1(int slot, int set) const { return rounds_[at(slot, set)].e1; }

  // Gives every sum this many elements, all 0: for a pool whose rounds had no values so far.
  void widen(int elements);

  void reset();

  // Bytes that a set of a slot takes: a sum of `elements` elements, the workers' marks (4), how
  // many are missing (1), two exponents, and the number of the round where it is guarded (4).
  static constexpr std::uint64_t bytes_of_set(int elements, bool guarded) {
    return 4 * static_cast<std::uint64_t>(elements) + (guarded ? 11 : 7);
  }

 private:
  struct Round {
    std::uint32_t marks = 0;
    std::uint8_t missing = 0;
    std::int8_t e0 = 0, e1 = 0;
    bool begun = false;  // ever
    bool has_values = false;
    bool answered = false;
    std::uint32_t id = 0;  // of its packets
    std::uint32_t next = 0;
  };
  std::size_t at(int slot, int set) const {
    return 2 * static_cast<std::size_t>(slot) + static_cast<std::size_t>(set);
  }
  std::size_t size_() const { return static_cast<std::size_t>(elements_); }

  int workers_, slots_, elements_;
  bool guarded_;
  std::vector<Round> rounds_;         // slot * 2 + set
  std::vector<std::int32_t> values_;  // (slot * 2 + set) * elements
};

}  // namespace ghostrank::switchml
