// Rounds of OmniReduce's Algorithm 2, as the party that sums a slot keeps them: an aggregator, a
// switch, or a rank in place of a switch that is gone.
//
// A slot has two rounds. A rank's packet of round r + 2 says that all ranks were heard in round
// r + 1, and so have the sum of r: its set is free. A packet counts once, however often and however
// late it comes, so any two parties that sum one round have the same sum.
//
// Threading: one owner.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "collectives/schemes/omnireduce/agents.h"

namespace ghostrank::omnireduce {

// Note::words of a packet.
struct Words {
  std::uint32_t round = 0;  // in the slot, over all calls
  std::uint32_t next = 0;   // block, or an end
};
static_assert(sizeof(Words) == kPacketWords);

inline Words words_in(const Note& note) {
  Words words;
  std::memcpy(&words, note.words.data(), sizeof words);
  return words;
}

inline std::uint32_t index_of(std::uint32_t slot, std::uint32_t round) {
  return slot | (round % 2 == 1 ? kSetBit : 0U);
}

inline bool well_formed(const Note& note, const Setup& setup) {
  const std::uint64_t block = setup.options.block;
  return note.words.size() == kPacketWords && (note.elements == 0 || note.elements == block) &&
         setup.own_slot(note.index & ~kSetBit) < static_cast<std::uint32_t>(setup.options.slots);
}

// One round of a slot: who was heard, the sum, the least next block.
class Round {
 public:
  bool is(std::uint32_t number) const { return used_ && told_.round == number; }
  bool is_older_than(std::uint32_t number) const {
    return !used_ ||
           static_cast<std::int32_t>(number - told_.round) > 0;  // the numbers wrap around
  }
  void begin(std::uint32_t number, int ranks) {
    used_ = true;
    told_ = {number, ~0U};
    missing_ = ranks;
    heard_.assign(ranks, false);
    sum_.clear();
    has_sum_ = false;
  }
  // False: the rank was heard before.
  bool add(GroupParty from, const Note& note) {
    if (heard_[from]) return false;
    heard_[from] = true;
    --missing_;
    told_.next = std::min(told_.next, words_in(note).next);
    type_ = note.type;
    if (note.elements > 0) {
      has_sum_ = true;
      sum_.add(note);
    }
    return true;
  }
  bool has_sum() const { return has_sum_; }
  bool complete() const { return missing_ == 0; }
  // The note that tells ranks of the sum; valid until the next round begins.
  Note told(std::uint32_t index, int block) const {
    return {.index = index,
            .type = type_,
            .elements = static_cast<std::uint64_t>(block),
            .content = sum_.content(),
            .words = std::as_bytes(std::span(&told_, 1))};
  }

 private:
  bool used_ = false, has_sum_ = false;
  int missing_ = 0;
  Words told_;
  DataType type_{};
  std::vector<bool> heard_;
  Sum sum_;
};

class SlotRounds {
 public:
  SlotRounds(int slots, int ranks) : ranks_(ranks), slots_(static_cast<std::size_t>(slots)) {}
  // The round of a packet, which the packet may begin; null: a late packet of an earlier round.
  Round* of(std::uint32_t slot, std::uint32_t number) {
    Round& round = slots_[slot][number % 2];
    if (round.is_older_than(number)) round.begin(number, ranks_);
    return round.is(number) ? &round : nullptr;
  }

 private:
  const int ranks_;
  std::vector<std::array<Round, 2>> slots_;
};

}  // namespace ghostrank::omnireduce
