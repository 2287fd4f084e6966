// A plug-in whose server counts packets instead of ranks, so that it adds a duplicate twice.
#include <map>
#include <memory>
#include <vector>

#include "collectives/agent.h"
#include "collectives/plugin.h"

namespace {

using namespace ghostrank;

class Member final : public Agent {
 public:
  explicit Member(GroupParty server) : server_(server) {}
  void on_call(Io& io, const Call& call) override {
    Note note{.call = call.number, .type = call.type, .elements = call.collective.count};
    note.content = io.tensor(call.number).read(0, note.elements);
    io.send(server_, note, Carriage::packet);
  }
  void on_note(Io& io, GroupParty, const Note& sum) override {
    if (sum.call != next_) return;
    io.tensor(sum.call).write(0, sum.content);
    io.done(next_++);
  }

 private:
  GroupParty server_;
  std::uint32_t next_ = 0;
};

class Server final : public Agent {
 public:
  explicit Server(int size) : size_(size) {}
  void on_note(Io& io, GroupParty, const Note& part) override {
    Slot& slot = slots_[part.call];
    slot.sum.add(part);
    if (++slot.parts != size_) return;
    std::vector<GroupParty> all;
    for (GroupRank r = 0; r < size_; ++r) all.push_back(r);
    Note note{.call = part.call, .type = part.type, .elements = part.elements};
    note.content = slot.sum.content();
    io.send(all, note, Carriage::packet);
  }

 private:
  struct Slot {
    int parts = 0;
    Sum sum;
  };
  int size_;
  std::map<std::uint32_t, Slot> slots_;
};

class Careless final : public Ends {
 public:
  using Ends::Ends;
  std::vector<Helper> helpers() const override { return {{}}; }
  std::unique_ptr<Agent> agent(GroupParty party) const override {
    if (party == size()) return std::make_unique<Server>(size());
    return std::make_unique<Member>(size());
  }
  std::vector<Edge> traffic(const Call& call) const override {
    std::vector<Edge> edges;
    const std::uint64_t bytes = call.collective.count * bytes_of(call.type);
    for (GroupRank r = 0; r < size(); ++r) {
      edges.push_back({r, size(), bytes, 1, Carriage::packet});
      edges.push_back({size(), r, bytes, 1, Carriage::packet});
    }
    return edges;
  }
  Survives survives() const override { return {.duplicates = true}; }
};

const Algorithm kRows[]{
    {.library = "wrong",
     .func = Func::all_reduce,
     .name = "careless",
     .ends = [](int size, const Communicator&) { return std::make_unique<Careless>(size); }}};

}  // namespace

GHOSTRANK_PLUGIN(kRows)
