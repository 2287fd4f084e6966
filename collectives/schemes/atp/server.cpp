// The parameter server of the scheme `atp`: adds up the packets that the switch passes on, single
// ones and sums, and sends results back through the switch. A worker's elements count once,
// whichever packets bring them. A core per slot adds them; the first ones of a sum are copied.
#include <utility>
#include <vector>

#include "collectives/schemes/atp/agents.h"
#include "collectives/schemes/shared/numbers.h"

namespace ghostrank::atp {
namespace {

class Server final : public Agent {
 public:
  Server(std::shared_ptr<const Layout> layout, int rail)
      : layout_(std::move(layout)),
        switch_(layout_->switch_of(rail)),
        slots_(layout_->options.window) {}

  void on_note(Io& io, GroupParty, const Note& note) override {
    const auto words = Words::read(note.words);
    if (!words) return;
    // Every slot has a sum in progress and the last one.
    held_.at_least(io, slots_.size() * 2 * kSumBytes);
    const std::size_t at = words->sequence % slots_.size();
    io.run_on(static_cast<int>(at));
    Slot& slot = slots_[at];
    if (slot.ended.is(*words)) return send(io, note, slot.ended, words->workers);
    if (!slot.open.is(*words)) {
      const Round& last = slot.open.begun ? slot.open : slot.ended;
      if (last.begun && static_cast<std::int32_t>(words->sequence - last.sequence) < 0)
        return;  // all workers have that result
      slot.open = {.begun = true, .sequence = words->sequence};
    }
    Round& round = slot.open;
    if (static_cast<Tag>(note.tag) == Tag::raw)
      add_plain(io, note, *words, round);
    else if (static_cast<Tag>(note.tag) == Tag::data)
      add(io, note, *words, round);
    if ((round.plain ? round.plain_workers : round.workers) == layout_->all_workers()) {
      round.complete = true;
      slot.ended = std::exchange(slot.open, {});
      send(io, note, slot.ended, layout_->all_workers());
    } else if (round.plain && static_cast<Tag>(note.tag) == Tag::data) {
      send(io, note, round, round.asked ? words->workers : layout_->all_workers());
      round.asked = true;
    }
  }

 private:
  // The packets of one sequence number.
  struct Round {
    bool is(const Words& words) const { return begun && sequence == words.sequence; }

    bool begun = false, complete = false;
    std::uint32_t sequence = 0;
    std::uint32_t workers = 0, plain_workers = 0;  // whose elements are in
    bool plain = false, asked = false;             // elements as they are: wanted, asked for
    std::vector<std::int32_t> units;               // sum; of plain int32 it wraps around
    std::vector<double> numbers;                   // sum of plain float32
    DataType type = DataType::int32;               // of plain elements
  };

  // A worker reuses a slot only after it has the result, so a complete round shows that all workers
  // have the slot's previous result.
  struct Slot {
    Round ended, open;
  };

  static void work(Io& io, const Note& note, bool first) {
    io.work(first ? Work::copy : Work::add, note.elements * bytes_of(note.type));
  }

  void add(Io& io, const Note& note, const Words& words, Round& round) {
    if (round.plain) return;  // asks again for the elements as they are
    round.plain = words.overflow;
    if ((words.workers & round.workers) != 0) return;  // one of them is in; the others resend
    work(io, note, round.workers == 0);
    if (!note.content.empty() && !add_units(round.units, units_in(note))) round.plain = true;
    round.workers |= words.workers;
  }

  void add_plain(Io& io, const Note& note, const Words& words, Round& round) {
    if (!round.plain || (words.workers & round.plain_workers) != 0) return;
    work(io, note, round.plain_workers == 0);
    if (round.plain_workers == 0) round.units.assign(note.elements, 0);
    round.plain_workers |= words.workers;
    round.type = note.type;
    if (note.content.empty()) return;
    if (note.type == DataType::int32)
      return add_elements(note.type, reinterpret_cast<std::byte*>(round.units.data()),
                          note.content.data(), note.elements);
    const std::vector<float> numbers = floats_of(note.type, note.content);
    round.numbers.resize(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) round.numbers[i] += numbers[i];
  }

  // `to`: a bit for each worker. Only workers that resend get the answer again: answers to all
  // would multiply a burst of resent packets, so that the next packets time out, too. If a send
  // finds no room, the workers resend and so ask again.
  void send(Io& io, const Note& like, const Round& round, std::uint32_t to) {
    const Tag tag = !round.complete ? Tag::ask : round.plain ? Tag::plain : Tag::sum;
    const auto bytes = Words{.sequence = round.sequence, .workers = to}.bytes();
    Note note{.tag = static_cast<std::uint8_t>(tag),
              .call = like.call,
              .index = like.index,
              .type = DataType::int32,
              .words = bytes};
    std::vector<float> numbers;
    if (tag != Tag::ask) {
      note.elements = kElements;
      note.content = std::as_bytes(std::span(round.units));
      if (round.plain && round.type != DataType::int32) {
        note.type = round.type;
        numbers.assign(round.numbers.begin(), round.numbers.end());
        note.content = std::as_bytes(std::span(numbers));
      }
    }
    io.send(switch_, note, Carriage::packet);
  }

  const std::shared_ptr<const Layout> layout_;
  const GroupParty switch_;
  std::vector<Slot> slots_;
  HeldBytes held_;
};

}  // namespace

std::unique_ptr<Agent> server_agent(std::shared_ptr<const Layout> layout, int rail) {
  return std::make_unique<Server>(std::move(layout), rail);
}

}  // namespace ghostrank::atp
