// A relay passes notes between its box and the boxes of other racks. With KeyRules::rack_nics the
// last NICs of a box carry only the traffic between boxes, so that it never waits behind pushes of
// nodes; each of these NICs has a relay. It routes a note by the note's key and its sender, which
// is the relay's own box or another rack's relay:
//
//   push    own box > the relay of the owner's rack        another relay > the owner, in this box
//   result  own box, which owns the key > all relays       another relay > the key's box here
#include "collectives/schemes/keyed/keyed.h"

namespace ghostrank {
namespace {

class Relay final : public Agent {
 public:
  Relay(const KeyedEnds& ends, int helper) : ends_(ends), rack_(ends.rack_of_helper(helper)) {}

  void on_note(Io& io, GroupParty from, const Note& note) override {
    const int owner = ends_.owner_of(note.index);
    const bool outwards =
        ends_.rack_of_helper(from - ends_.size()) == rack_ && !ends_.is_relay(from - ends_.size());
    if (!outwards) return pass(io, ends_.helper_in(rack_, owner), note);
    if (static_cast<KeyTag>(note.tag) == KeyTag::push)
      return pass(io, ends_.relay_in(ends_.rack_of_helper(owner), note.index), note);
    for (int rack = 0; rack < ends_.racks(); ++rack)
      if (rack != rack_) pass(io, ends_.relay_in(rack, note.index), note);
  }

  void on_room(Io& io) override { outbox_.on_room(io); }

 private:
  void pass(Io& io, int helper, const Note& note) { outbox_.send(io, ends_.size() + helper, note); }

  const KeyedEnds& ends_;
  const int rack_;
  KeyOutbox outbox_;
};

}  // namespace

std::unique_ptr<Agent> key_relay(const KeyedEnds& ends, int helper) {
  return std::make_unique<Relay>(ends, helper);
}

}  // namespace ghostrank
