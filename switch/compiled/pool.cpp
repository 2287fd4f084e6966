#include "switch/compiled/pool.h"

#include <algorithm>

#include "switch/assert.h"
#include "switch/compiled/lanes.h"

namespace ghostrank::switchml {

Pool::Pool(int workers, int slots, int elements, bool guarded)
    : workers_(workers), slots_(slots), elements_(elements), guarded_(guarded) {
  GHOSTRANK_ASSERT(workers >= 1 && workers <= kMaxWorkers);
  GHOSTRANK_ASSERT(slots >= 1 && slots <= kMaxSlots);
  GHOSTRANK_ASSERT(valid_elements(elements));
  rounds_.resize(2 * static_cast<std::size_t>(slots));
  values_.resize(rounds_.size() * size_());
}

Verdict Pool::receive(int worker, int slot, const Packet& packet) {
  Round& round = rounds_[at(slot, packet.set)];
  Round& other = rounds_[at(slot, 1 - packet.set)];
  const std::uint32_t mark = 1u << worker;
  if (!guarded_) {
    other.marks &= ~mark;
  } else if (!round.begun || packet.id != round.id) {
    const bool old = round.begun && static_cast<std::int32_t>(packet.id - round.id) < 0;
    if (old) return Verdict::duplicate;
    round.marks = round.missing = 0;
  }
  const std::uint32_t before = round.marks;
  round.marks |= mark;
  if ((before & mark) != 0) return round.missing == 0 ? Verdict::retransmit : Verdict::duplicate;

  std::int32_t* values = values_.data() + at(slot, packet.set) * size_();
  if (before == 0) {
    if (packet.values != nullptr)
      load_lanes(values, packet.values, elements_);
    else
      std::fill_n(values, elements_, 0);
    round.e0 = packet.e0;
    round.e1 = packet.e1;
    round.begun = true;
    round.answered = false;
    round.id = packet.id;
    round.next = packet.next;
    round.has_values = packet.values != nullptr;
  } else {
    if (packet.values != nullptr) add_lanes(values, packet.values, elements_);
    round.e0 = std::max(round.e0, packet.e0);
    round.e1 = std::max(round.e1, packet.e1);
    round.next = std::min(round.next, packet.next);
    round.has_values = round.has_values || packet.values != nullptr;
  }
  round.missing = static_cast<std::uint8_t>((round.missing == 0 ? workers_ : round.missing) - 1);
  return round.missing == 0 ? Verdict::broadcast : Verdict::collect;
}

void Pool::keep(int slot, const Packet& answer) {
  GHOSTRANK_ASSERT(guarded_);
  Round& round = rounds_[at(slot, answer.set)];
  if (!round.begun || round.id != answer.id || round.missing != 0) return;
  round.answered = true;
  round.has_values = answer.values != nullptr;
  round.e0 = answer.e0;
  round.e1 = answer.e1;
  if (round.has_values)
    load_lanes(values_.data() + at(slot, answer.set) * size_(), answer.values, elements_);
}

void Pool::widen(int elements) {
  GHOSTRANK_ASSERT(valid_elements(elements));
  elements_ = elements;
  values_.assign(rounds_.size() * size_(), 0);
}

void Pool::reset() {
  std::fill(rounds_.begin(), rounds_.end(), Round{});
  std::fill(values_.begin(), values_.end(), 0);
}

}  // namespace ghostrank::switchml
