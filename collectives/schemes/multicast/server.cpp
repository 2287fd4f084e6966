// The agent of a rack in the scheme `orca`: gives packets back to its leaf with the rack's label.
// It knows the session's members below the leaf, whatever the call.
#include <map>

#include "collectives/schemes/multicast/agents.h"
#include "collectives/schemes/shared/kept_note.h"

namespace ghostrank::multicast {
namespace {

class RackServer final : public Agent {
 public:
  RackServer(std::shared_ptr<const Layout> layout, GroupParty party)
      : layout_(std::move(layout)), rack_(layout_->rack_of(party)), me_(party) {}

  void on_note(Io& io, GroupParty from, const Note& note) override {
    const auto [at, fresh] = sessions_.try_emplace(from);
    Session& session = at->second;
    if (fresh) session = {layout_->members(rack_, from), layout_->rack_header(rack_, me_, from)};
    const std::vector<std::byte> words = headers(session.header, layout_->packets(note.elements));
    Note labelled = note;
    labelled.tag = static_cast<std::uint8_t>(Tag::rack);
    labelled.words = words;
    outbox_.send(io, session.members, labelled);
    outbox_.send(io, from, credit_for(note));
  }
  void on_room(Io& io) override { outbox_.flush(io); }

 private:
  struct Session {
    std::vector<GroupParty> members;
    std::vector<std::byte> header;
  };

  const std::shared_ptr<const Layout> layout_;
  const Layout::Below& rack_;
  const GroupParty me_;
  std::map<GroupParty, Session> sessions_;  // by root
  Outbox outbox_;
};

}  // namespace

std::unique_ptr<Agent> server_agent(std::shared_ptr<const Layout> layout, GroupParty party) {
  return std::make_unique<RackServer>(std::move(layout), party);
}

}  // namespace ghostrank::multicast
