// A scheme that depends on data, as a plug-in: an all-reduce through a server that skips blocks of
// zeros. Every rank sends its nonzero blocks and then an end note. After all end notes the server
// sends all ranks the sums of the blocks that any rank has sent.
//
//   rank 0   # . . # .   blocks 0 3, end >.
//   server                                 + 0 1 3 > 0 1, blocks 0 1 3, end
//   rank 1   . # . # .   blocks 1 3, end >'
//   up d S, down u S for densities d of a rank's blocks and u of all ranks' together
//
// All notes are reliable and in order, so an end note arrives last. After a refused send the rest
// waits for on_room().
#include <algorithm>
#include <deque>
#include <map>
#include <numeric>

#include "collectives/agent.h"
#include "collectives/plugin.h"

namespace {
using namespace ghostrank;
constexpr std::uint64_t kBlock = 256, kHeader = 16;  // kBlock: elements; kHeader: bytes of a note
enum Tag : std::uint8_t { kData, kEnd };

std::uint64_t blocks_of(const Call& call) { return (call.collective.count + kBlock - 1) / kBlock; }
Note block_note(const Call& call, std::uint64_t b) {
  Note note{.call = call.number, .index = static_cast<std::uint32_t>(b), .type = call.type};
  note.elements = std::min(kBlock, call.collective.count - b * kBlock);
  return note;
}

class Member final : public Agent {
 public:
  explicit Member(GroupParty server) : server_(server) {}
  void on_call(Io& io, const Call& call) override {
    calls_.push_back(call);
    on_room(io);
  }
  void on_room(Io& io) override {
    for (; !calls_.empty(); calls_.pop_front(), next_ = 0) {
      const Call& call = calls_.front();
      Tensor& tensor = io.tensor(call.number);
      for (; next_ < blocks_of(call); ++next_) {
        Note part = block_note(call, next_);
        if (!tensor.nonzero(next_ * kBlock, part.elements)) continue;
        part.content = tensor.read(next_ * kBlock, part.elements);
        if (!io.send(server_, part, Carriage::reliable)) return;
      }
      if (!io.send(server_, {.tag = kEnd, .call = call.number}, Carriage::reliable)) return;
    }
  }
  void on_note(Io& io, GroupParty, const Note& sum) override {
    if (sum.tag == kEnd) return io.done(sum.call);
    io.tensor(sum.call).write(sum.index * kBlock, sum.content);
  }

 private:
  GroupParty server_;
  std::deque<Call> calls_;  // calls with blocks or an end note still to send
  std::uint64_t next_ = 0;  // next block of the first of these calls
};

class Server final : public Agent {
 public:
  explicit Server(int size) : ranks_(size) { std::iota(ranks_.begin(), ranks_.end(), 0); }
  void on_note(Io& io, GroupParty, const Note& part) override {
    Open& open = open_[part.call];
    if (part.tag == kEnd) {
      if (++open.ended == ranks_.size()) complete_.push_back(part.call);
      return on_room(io);
    }
    auto& [note, sum] = open.blocks[part.index];
    note = part;
    sum.add(part);
  }
  void on_room(Io& io) override {
    for (; !complete_.empty(); complete_.pop_front()) {
      auto& blocks = open_[complete_.front()].blocks;
      for (; !blocks.empty(); blocks.erase(blocks.begin())) {
        auto& [note, sum] = blocks.begin()->second;
        note.content = sum.content();
        note.words = {};
        if (!io.send(ranks_, note, Carriage::reliable)) return;
      }
      if (!io.send(ranks_, {.tag = kEnd, .call = complete_.front()}, Carriage::reliable)) return;
      open_.erase(complete_.front());
    }
  }

 private:
  struct Open {
    std::size_t ended = 0;  // ranks whose end note has arrived
    std::map<std::uint32_t, std::pair<Note, Sum>> blocks;
  };
  std::vector<GroupParty> ranks_;
  std::map<std::uint32_t, Open> open_;  // by call
  std::deque<std::uint32_t> complete_;  // complete calls whose sums are not all sent
};

class SparseServer final : public Ends {
 public:
  using Ends::Ends;
  std::vector<Helper> helpers() const override { return {{PartyKind::server}}; }
  std::unique_ptr<Agent> agent(GroupParty party) const override {
    if (party == size()) return std::make_unique<Server>(size());
    return std::make_unique<Member>(size());
  }
  bool exact() const override { return false; }
  std::uint64_t overhead_bytes() const override { return kHeader; }
  std::vector<Edge> traffic(const Call& call) const override {
    const auto edge = [&](GroupParty from, GroupParty to, double share) -> Edge {
      const auto elements = static_cast<double>(call.collective.count) * share;
      const auto notes =
          static_cast<std::uint64_t>(static_cast<double>(blocks_of(call)) * share) + 1;
      return {from, to,
              static_cast<std::uint64_t>(elements) * bytes_of(call.type) + notes * kHeader, notes};
    };
    std::vector<Edge> edges;
    for (GroupRank r = 0; r < size(); ++r) {
      edges.push_back(edge(r, size(), call.sparsity.density));
      edges.push_back(edge(size(), r, call.sparsity.union_density(size())));
    }
    return edges;
  }
};

const Algorithm kRows[]{{.library = "mine",
                         .func = Func::all_reduce,
                         .name = "sparse-server",
                         .ends = [](int n, auto&) { return std::make_unique<SparseServer>(n); }}};

}  // namespace

GHOSTRANK_PLUGIN(kRows)
