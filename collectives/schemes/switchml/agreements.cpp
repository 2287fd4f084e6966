#include "collectives/schemes/switchml/agreements.h"

#include <algorithm>
#include <utility>

namespace ghostrank::switchml {
namespace {

Contribution packet_in(const Note& note, const Words& words) {
  Contribution packet{words, note.elements > 0};
  packet.values.resize(note.content.size() / sizeof packet.values[0]);
  std::copy(note.content.begin(), note.content.end(),
            std::as_writable_bytes(std::span(packet.values)).begin());
  return packet;
}

}  // namespace

void Contribution::add(const Contribution& other) {
  words.exponent = std::max(words.exponent, other.words.exponent);
  full |= other.full;
  if (other.values.empty()) return;
  values.resize(other.values.size());
  add_elements(DataType::int32, std::as_writable_bytes(std::span(values)).data(),
               std::as_bytes(std::span(other.values)).data(), values.size());
}

Agreements::Agreements(const Rails& rails, int rail, int node, int slots, int elements,
                       std::uint32_t fallback, Streamer& streamer, Outbox& outbox)
    : rails_(rails),
      rail_(rail),
      node_(node),
      elements_(elements),
      slots_(slots),
      fallback_(fallback),
      streamer_(streamer),
      outbox_(outbox) {}

void Agreements::suspect(Io& io) {
  if (std::exchange(suspected_, true)) return;
  if (!speaks()) return tell(io, 0, kSuspect);
  if (!agreement_) begin(io);
}

void Agreements::take(Io& io, GroupParty from, const Note& note) {
  switch (note.tag) {
    case kSuspect:
      if (note.call == known_ && !agreement_ && !over_) begin(io);
      return;
    case kStop:
      known_ = note.call;
      streamer_.pause();
      return list(io, 0, kState, streamer_.state());
    case kState:
      return take_state(io, rails_.node_of(from), note.words);
    case kGo:
      agreed_.add(note.words);
      if (agreed_.slots.size() == slots_) go(io, std::exchange(agreed_, {}));
      return;
    default:
      break;
  }
  const auto words = Words::read(Reach::to_one, note.words);
  if (!words) return;
  const auto slot = static_cast<std::uint16_t>(note.index);
  if (note.tag == kPart) return take_part(io, slot, packet_in(note, *words));
  if (note.tag == kSum) streamer_.take_sum(io, slot, packet_in(note, *words));
}

void Agreements::tell(Io& io, int node, std::uint8_t tag, std::uint32_t index,
                      std::span<const std::byte> words, const Contribution* packet) {
  Note note{.tag = tag, .call = known_, .index = index, .type = DataType::int32, .words = words};
  if (packet && packet->full) {
    note.elements = elements_;
    note.content = std::as_bytes(std::span(packet->values));
  }
  outbox_.send(io, rails_.worker(rail_, node), note);
}

void Agreements::list(Io& io, int node, std::uint8_t tag, const SlotList& slots) {
  for (std::size_t first = 0; first < slots_; first += SlotList::kMost) {
    const std::size_t count = std::min(SlotList::kMost, slots_ - first);
    tell(io, node, tag, static_cast<std::uint32_t>(first), slots.bytes(first, count));
  }
}

// ---- The speaker ----

void Agreements::begin(Io& io) {
  ++known_;
  agreement_.emplace(rails_.nodes(), static_cast<int>(slots_));
  streamer_.pause();
  for (int node = 1; node < rails_.nodes(); ++node) tell(io, node, kStop);
  take_state(io, 0, streamer_.state().bytes(0, slots_));
}

void Agreements::take_state(Io& io, int node, std::span<const std::byte> words) {
  if (!agreement_) return;
  agreement_->add(node, words);
  if (agreement_->whole()) conclude(io);
}

// All states are there.
void Agreements::conclude(Io& io) {
  SlotList agreed = agreement_->decide(fallback_);
  agreed.ticks =
      heard_ ? std::max(kPatience, patience_ / 2) : std::min(2 * patience_, kMostPatience);
  for (std::size_t s = 0; s < slots_; ++s) {
    const auto slot = static_cast<std::uint16_t>(s);
    SlotState& state = agreed.slots[s];
    state.parts &= agreed.decision != Decision::go_on && !parts_.contains(slot);
    if (!state.parts) continue;
    Parts& parts = parts_[slot];
    parts.missing = rails_.nodes();
    parts.sum.words.packet = state.completed;
    parts.lacking = agreement_->lacking(s);
  }
  agreement_.reset();
  for (int node = 1; node < rails_.nodes(); ++node) list(io, node, kGo, agreed);
  if (agreed.decision == Decision::restart) io.tell(Incident::restart);
  if (agreed.decision == Decision::fall_back) io.tell(Incident::fallback);
  go(io, agreed);
}

void Agreements::take_part(Io& io, std::uint16_t slot, const Contribution& part) {
  const auto found = parts_.find(slot);
  if (found == parts_.end()) return;
  found->second.sum.add(part);
  if (--found->second.missing > 0) return;
  const Parts whole = std::move(found->second);
  parts_.erase(found);
  for (const int node : whole.lacking) {
    if (node == node_)
      streamer_.take_sum(io, slot, whole.sum);
    else
      tell(io, node, kSum, slot, whole.sum.words.bytes(Reach::to_one), &whole.sum);
  }
}

// ---- Every worker ----

void Agreements::go(Io& io, const SlotList& agreed) {
  suspected_ = heard_ = false;
  patience_ = agreed.ticks;
  over_ |= agreed.decision == Decision::fall_back;
  streamer_.go(io, agreed);
  for (std::size_t s = 0; s < slots_; ++s) {
    if (!agreed.slots[s].parts) continue;
    const auto slot = static_cast<std::uint16_t>(s);
    const Contribution part = streamer_.part(slot, agreed.slots[s].completed);
    if (speaks())
      take_part(io, slot, part);
    else
      tell(io, 0, kPart, slot, part.words.bytes(Reach::to_one), &part);
  }
}

}  // namespace ghostrank::switchml
