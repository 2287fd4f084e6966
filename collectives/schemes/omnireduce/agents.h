// The agents of OmniReduce's two algorithms, and what their notes hold; see omnireduce.h.
//
// Threading: free functions; an agent has one owner.
#pragma once

#include <cstdint>
#include <memory>

#include "collectives/schemes/omnireduce.h"
#include "collectives/schemes/omnireduce/block_columns.h"
#include "collectives/schemes/shared/held_bytes.h"
#include "collectives/wire_format.h"

namespace ghostrank::omnireduce {

// Which aggregator sums a slot, and under which index in packets: slots go to the aggregators in
// turn.
struct SlotOwner {
  GroupParty aggregator;
  std::uint32_t index;
};

struct Setup {
  int ranks;
  OmniReduceOptions options;

  BlockShape shape() const {
    return {options.block, options.columns, options.slots * options.aggregators};
  }
  SlotOwner owner_of(int slot) const {
    return {ranks + slot % options.aggregators,
            static_cast<std::uint32_t>(options.first_slot + slot / options.aggregators)};
  }
  // The slot among its aggregator's own, from 0; options.slots or more: it is none of them.
  std::uint32_t own_slot(std::uint32_t index) const {
    return index - static_cast<std::uint32_t>(options.first_slot);
  }
  int slot_of(GroupParty aggregator, std::uint32_t index) const {
    return static_cast<int>(own_slot(index)) * options.aggregators + (aggregator - ranks);
  }
};

// What sums cost the machine of an aggregator: the memory of two sets for every slot (with packets,
// each with a bit for every rank), and the time of a core per slot for blocks. A switch has no
// processor. Threading: one owner.
class SumCost {
 public:
  explicit SumCost(const Setup& setup) : setup_(setup) {}
  void begin(Io& io, std::uint32_t slot, DataType type) {
    const OmniReduceOptions& o = setup_.options;
    const std::uint64_t elements = std::uint64_t(o.block) * static_cast<std::uint64_t>(o.columns);
    const std::uint64_t marks = o.packets ? (static_cast<std::uint64_t>(setup_.ranks) + 7) / 8 : 0;
    const std::uint64_t bytes =
        2 * static_cast<std::uint64_t>(o.slots) * (elements * bytes_of(type) + marks);
    held_.at_least(io, bytes);
    if (!o.in_switch) io.run_on(static_cast<int>(slot));
  }
  // `first`: the block begins a sum, else it is added to one.
  void block(Io& io, DataType type, bool first) const {
    if (setup_.options.in_switch) return;
    io.work(first ? Work::copy : Work::add,
            static_cast<std::uint64_t>(setup_.options.block) * bytes_of(type));
  }

 private:
  const Setup setup_;
  HeldBytes held_;
};

// Algorithm 1. Note::index is the slot's index at its aggregator; `words` has for each block of the
// note, in order, four bytes: up, the sender's next nonzero block of that column; down, the least
// of all ranks'. Beside them a message has 4 bytes: the types, the number of blocks and the slot,
// which the source sends as RDMA's immediate.
inline constexpr std::uint64_t kMessageOverhead = 4;
std::unique_ptr<Agent> reliable_member(const Setup& setup);
std::unique_ptr<Agent> reliable_aggregator(const Setup& setup);

// Algorithm 2. Note::index is the slot's index at its aggregator, and bit 15 its set; `words` has
// four bytes each of the round's number in the slot and of the next block, as above. Beside them a
// packet has the index (2 bytes) and the type of its elements (1): the source's header of 11 bytes,
// whose first field repeats the block instead of counting rounds.
inline constexpr std::uint64_t kPacketOverhead = 3;
inline constexpr std::size_t kPacketWords = 8;
inline constexpr std::uint32_t kSetBit = 1U << 15;
std::unique_ptr<Agent> packet_member(const Setup& setup, GroupRank self);
std::unique_ptr<Agent> packet_aggregator(const Setup& setup);
// For a switch elements are big-endian, as all other fields are (switch/wire/sparse.h).
const WireFormat& packet_format(bool for_switch);

}  // namespace ghostrank::omnireduce
