// The switches of the scheme `switchml`: the slots of one communicator on one rail's switch, of a
// rack's workers or above the racks. switch/compiled/pool.h is the state machine; what a round's
// results carry depends on who takes them (packets.h).
//
// A rack's switch sends the sum of a complete round up. A guarded one keeps the answer of the
// switch above in its place, for workers that lose it. Where it has no answer, a worker's
// retransmission goes up, too.
#include <algorithm>
#include <cstring>
#include <optional>

#include "collectives/schemes/shared/held_bytes.h"
#include "collectives/schemes/switchml/agents.h"
#include "collectives/schemes/switchml/packets.h"
#include "switch/compiled/lanes.h"
#include "switch/compiled/pool.h"

namespace ghostrank::switchml {
namespace {

// What a switch serves: its children are workers, or switches with `each` workers each.
struct Post {
  std::vector<GroupParty> children;
  int first_worker = 0, each = 1;
  GroupParty above = -1;  // -1: none

  // The child that serves a worker; -1: none does.
  int child_of(int worker) const {
    const int child = (worker - first_worker) / each;
    return worker >= first_worker && child < static_cast<int>(children.size()) ? child : -1;
  }
};

class Switch final : public Agent {
 public:
  Switch(const SwitchMlOptions& options, Post post)
      : options_(options),
        post_(std::move(post)),
        lanes_(4 * static_cast<std::size_t>(options.elements)),
        spent_(options.packet_rate > 0 ? static_cast<Picoseconds>(1e12 / options.packet_rate) : 0) {
  }

  void on_note(Io& io, GroupParty from, const Note& note) override {
    if (note.tag > static_cast<std::uint8_t>(Reach::from_one)) return;
    if (spent_ > 0) io.spend(spent_);
    held_.at_least(io, bytes_held());
    const auto reach = static_cast<Reach>(note.tag);
    const auto words = Words::read(reach, note.words);
    const int slot = slot_of(note);
    const std::uint64_t full = options_.elements;
    if (!words || slot < 0 || slot >= options_.slots ||
        (note.elements != 0 && note.elements != full))
      return;  // malformed
    if (from == post_.above) return take_answer(io, note, *words);
    const auto child = std::find(post_.children.begin(), post_.children.end(), from);
    if (child == post_.children.end()) return;
    add(io, static_cast<int>(child - post_.children.begin()), note, *words);
  }

 private:
  int slot_of(const Note& note) const {
    return static_cast<int>(note.index & ~unsigned{kSetBit}) - options_.first_slot;
  }
  static std::uint8_t set_of(const Note& note) { return (note.index & kSetBit) != 0; }

  // Every slot has two sets. A guarded set below another switch also has a mark: `answered`.
  std::uint64_t bytes_held() const {
    const std::uint64_t mark = options_.guard && post_.above >= 0 ? 1 : 0;
    return 2 * std::uint64_t(options_.slots) *
           (Pool::bytes_of_set(options_.elements, options_.guard) + mark);
  }

  // Without real data the pool need not store values: 32 elements are the least that it takes.
  void make_pool(const Note& note) {
    const auto children = static_cast<int>(post_.children.size());
    if (!pool_) pool_.emplace(children, options_.slots, 32, options_.guard);
    if (note.content.empty() || real_) return;
    real_ = true;
    pool_->widen(options_.elements);
  }

  // A note as the packet that the pool takes; its elements are in lanes_ until the next one.
  Packet packet_of(const Note& note, const Words& words) {
    make_pool(note);
    if (!note.content.empty()) {
      std::vector<std::int32_t> values(note.elements);
      std::memcpy(values.data(), note.content.data(), note.content.size());
      store_lanes(lanes_.data(), values.data(), options_.elements);
    }
    return {.id = words.packet,
            .slot = static_cast<std::uint16_t>(slot_of(note)),
            .set = set_of(note),
            .e0 = words.exponent,
            .elements = pool_->elements(),
            .values = note.content.empty() ? nullptr : lanes_.data()};
  }

  void add(Io& io, int child, const Note& note, const Words& words) {
    const Packet packet = packet_of(note, words);
    const Verdict verdict = pool_->receive(child, packet.slot, packet);
    const bool last = verdict == Verdict::broadcast;
    if (!last && verdict != Verdict::retransmit) return;
    if (post_.above >= 0 && !pool_->answered(packet.slot, packet)) return send_up(io, note, words);
    const std::span<const GroupParty> all = post_.children;
    give(io, last ? all : all.subspan(child, 1), note, words, pool_->e0(packet.slot, packet.set),
         sum(note));
  }

  std::span<const std::byte> sum(const Note& note) const {
    if (!real_) return {};
    return std::as_bytes(std::span(pool_->values(slot_of(note), set_of(note)),
                                   static_cast<std::size_t>(options_.elements)));
  }

  void send(Io& io, std::span<const GroupParty> to, const Note& like, Words words,
            std::int8_t exponent, std::span<const std::byte> content, bool full) {
    if (to.empty()) return;
    words.exponent = exponent;
    const Words::Bytes bytes = words.bytes(static_cast<Reach>(like.tag));
    Note note{.tag = like.tag, .call = like.call, .index = like.index, .type = DataType::int32};
    note.elements = full ? static_cast<std::uint64_t>(options_.elements) : 0;
    if (full) note.content = content;
    note.words = bytes;
    // If this send finds no room, the workers resend and so ask again.
    io.send(to, note, Carriage::packet);
  }

  void send_up(Io& io, const Note& note, const Words& words) {
    const bool full = note.elements > 0 || post_.child_of(words.worker) >= 0;
    send(io, {&post_.above, 1}, note, words, pool_->e0(slot_of(note), set_of(note)), sum(note),
         full);
  }

  // Gives a complete round's result to children: elements to those that take them, credits to the
  // others.
  void give(Io& io, std::span<const GroupParty> to, const Note& note, const Words& words,
            std::int8_t exponent, std::span<const std::byte> content) {
    const auto reach = static_cast<Reach>(note.tag);
    if (reach == Reach::everyone) return send(io, to, note, words, exponent, content, true);
    const int own = post_.child_of(words.worker);
    std::vector<GroupParty> full, credit;
    for (const GroupParty child : to) {
      const bool alone = own >= 0 && post_.children[own] == child;
      const bool takes = alone == (reach == Reach::to_one);
      (takes ? full : credit).push_back(child);
    }
    send(io, full, note, words, exponent, content, true);
    send(io, credit, note, words, exponent, {}, false);
  }

  // An answer is a credit where the rack's own sum has all elements that its workers need.
  void take_answer(Io& io, const Note& note, const Words& words) {
    const Packet answer = packet_of(note, words);
    if (options_.guard) {
      if (pool_->answered(answer.slot, answer)) return;  // everybody has been sent it
      pool_->keep(answer.slot, answer);
      if (!pool_->answered(answer.slot, answer)) return;  // of another round
    }
    give(io, post_.children, note, words, words.exponent,
         note.content.empty() ? sum(note) : note.content);
  }

  const SwitchMlOptions options_;
  const Post post_;
  std::vector<std::byte> lanes_;  // one packet's elements, big-endian
  const Picoseconds spent_;       // per packet
  HeldBytes held_;
  std::optional<Pool> pool_;
  bool real_ = false;  // the ranks hold real data
};

}  // namespace

std::unique_ptr<Agent> switch_agent(std::shared_ptr<const Layout> layout, GroupParty party) {
  const Racks& racks = layout->racks;
  const Racks::Location location = racks.location_of(party);
  const bool root = location.rack == racks.racks;
  Post post{.children = racks.below(location, layout->rails),
            .first_worker = root ? 0 : racks.begin(location.rack),
            .each = root ? racks.in_rack : 1};
  if (!root && racks.two_levels()) post.above = racks.root(location.rail);
  return std::make_unique<Switch>(layout->options, std::move(post));
}

}  // namespace ghostrank::switchml
