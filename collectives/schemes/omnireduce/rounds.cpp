// The aggregator of OmniReduce's Algorithm 2, a server or a switch; see omnireduce.h.
#include "collectives/schemes/omnireduce/rounds.h"

#include <numeric>

namespace ghostrank::omnireduce {
namespace {

class PacketAggregator final : public Agent {
 public:
  explicit PacketAggregator(const Setup& setup)
      : setup_(setup),
        cost_(setup),
        rounds_(setup.options.slots, setup.ranks),
        all_(setup.ranks),
        spent_(setup.options.packet_rate > 0
                   ? static_cast<Picoseconds>(1e12 / setup.options.packet_rate)
                   : 0) {
    std::iota(all_.begin(), all_.end(), 0);
  }

  void on_note(Io& io, GroupParty from, const Note& note) override {
    if (spent_ > 0) io.spend(spent_);
    if (from >= setup_.ranks || !well_formed(note, setup_)) return;
    const std::uint32_t slot = setup_.own_slot(note.index & ~kSetBit);
    Round* round = rounds_.of(slot, words_in(note).round);
    if (!round) return;
    cost_.begin(io, slot, note.type);
    const bool first = !round->has_sum();
    const bool fresh = round->add(from, note);
    if (fresh && note.elements > 0) cost_.block(io, note.type, first);
    if (!round->complete()) return;
    const Note sum = round->told(note.index, setup_.options.block);
    // Where a send finds no room, the rank asks again.
    if (!fresh)
      io.send(from, sum, Carriage::packet);
    else if (setup_.options.in_switch)
      io.send(all_, sum, Carriage::packet);
    else
      for (int i = 0; i < setup_.ranks; ++i)
        io.send((static_cast<GroupParty>(slot % all_.size()) + i) % setup_.ranks, sum,
                Carriage::packet);
  }

 private:
  const Setup setup_;
  SumCost cost_;
  SlotRounds rounds_;
  std::vector<GroupParty> all_;
  const Picoseconds spent_;  // per packet
};

}  // namespace

std::unique_ptr<Agent> packet_aggregator(const Setup& setup) {
  return std::make_unique<PacketAggregator>(setup);
}

}  // namespace ghostrank::omnireduce
