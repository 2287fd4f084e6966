// A switch of the scheme `sharp`: grants or refuses a tree, and sums the messages of its children.
// The communicators on a switch share SharpTrees, which counts the trees of all of them.
#include <map>
#include <set>

#include "collectives/schemes/shared/held_bytes.h"
#include "collectives/schemes/shared/kept_note.h"
#include "collectives/schemes/sharp/agents.h"

namespace ghostrank::sharp {
namespace {

class SharpSwitch final : public Agent {
 public:
  // `ports`: those of its children.
  SharpSwitch(const SharpOptions& options, std::vector<GroupParty> children, GroupParty above,
              std::vector<std::int32_t> ports, SharpTrees& trees)
      : options_(options),
        children_(std::move(children)),
        above_(above),
        ports_(std::move(ports)),
        trees_(trees) {}

  void on_note(Io& io, GroupParty, const Note& note) override {
    switch (static_cast<Tag>(note.tag)) {
      case Tag::ask:
        return ask(io, note);
      case Tag::answer:
        if (note.index == 0) give_back();
        return send(io, children_, note, Tag::answer);
      case Tag::up:
        return add(io, note);
      case Tag::down:
        return send(io, children_, note, Tag::down);
      default:
        return;
    }
  }
  void on_room(Io& io) override { outbox_.flush(io); }

 private:
  struct Partial {
    std::size_t messages = 0;
    Sum sum;
  };

  // ---- Trees ----

  bool has_one_left() const {
    if (!options_.per_port) return trees_.active < options_.trees;
    for (const std::int32_t port : ports_) {
      const auto at = trees_.on_port.find(port);
      if ((at == trees_.on_port.end() ? 0 : at->second) >= options_.trees) return false;
    }
    return true;
  }
  bool take_one() {
    if (!has_one_left()) {
      ++trees_.refused;
      return false;
    }
    ++trees_.active;
    for (const std::int32_t port : ports_) ++trees_.on_port[port];
    return true;
  }
  void give_back() {
    if (!holds_) return;
    holds_ = false;
    --trees_.active;
    for (const std::int32_t port : ports_) --trees_.on_port[port];
  }

  // Decides when all children have asked. Index 1: a switch below has no tree.
  void ask(Io& io, const Note& note) {
    if (asked_ == 0) holds_ = take_one();
    refused_ |= note.index == 1;
    if (++asked_ < children_.size()) return;
    const bool all = holds_ && !refused_;
    Note next = note;
    if (above_ >= 0) {
      next.index = all ? 0 : 1;
      return send(io, {&above_, 1}, next, Tag::ask);
    }
    if (!all) give_back();
    next.index = all ? 1 : 0;
    send(io, children_, next, Tag::answer);
  }

  // ---- Messages ----

  void add(Io& io, const Note& note) {
    const auto [at, fresh] = partial_.try_emplace({note.call, note.index});
    if (fresh) held_.at_least(io, summed_ += note_bytes(note, 0));
    Partial& partial = at->second;
    partial.sum.add(note);
    if (++partial.messages < children_.size()) return;
    Note sum = note;
    sum.content = partial.sum.content();
    if (above_ >= 0)
      send(io, {&above_, 1}, sum, Tag::up);
    else
      send(io, children_, sum, Tag::down);
    partial_.erase(at);
    summed_ -= note_bytes(note, 0);
  }

  void send(Io& io, std::span<const GroupParty> to, Note note, Tag tag) {
    note.tag = static_cast<std::uint8_t>(tag);
    outbox_.send(io, to, note);
  }

  const SharpOptions options_;
  const std::vector<GroupParty> children_;
  const GroupParty above_;  // -1: none
  const std::vector<std::int32_t> ports_;
  SharpTrees& trees_;
  std::size_t asked_ = 0;
  bool holds_ = false, refused_ = false;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Partial> partial_;  // by call and chunk
  std::uint64_t summed_ = 0;                                            // bytes of these sums
  HeldBytes held_;
  Outbox outbox_;
};

}  // namespace

std::unique_ptr<Agent> switch_agent(std::shared_ptr<const Layout> layout, GroupParty party,
                                    Site& site) {
  const Racks& racks = layout->racks;
  const Racks::Location location = racks.location_of(party);
  const bool root = location.rack == racks.racks;
  std::vector<GroupParty> below = racks.below(location, layout->rails);
  std::vector<std::int32_t> ports;
  for (const GroupParty child : below)  // a rack has its first worker's port
    ports.push_back(layout->port(
        root ? layout->rails.worker(location.rail, racks.begin(racks.location_of(child).rack))
             : child));
  const GroupParty above = !root && racks.two_levels() ? racks.root(location.rail) : -1;
  return std::make_unique<SharpSwitch>(layout->options, std::move(below), above, std::move(ports),
                                       site.get<SharpTrees>());
}

}  // namespace ghostrank::sharp
