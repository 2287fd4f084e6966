// The ranks of a scheme with keys; see keyed.h.
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "collectives/schemes/keyed.h"

namespace ghostrank {
namespace {

class Worker final : public Agent {
 public:
  Worker(const KeyedEnds& ends, GroupRank rank) : ends_(ends), mates_(ends.node_with(rank)) {
    while (mates_[self_] != rank) ++self_;
  }

  void on_call(Io& io, const Call& call) override {
    auto pieces = ends_.pieces(call);
    if (pieces->empty()) return io.done(call.number);
    const std::size_t left = pieces->size();
    open_.try_emplace(call.number, Open{call, std::move(pieces), left});
    if (self_ > 0) return tell(io, 0, KeyTag::ready, call, 0);
    someone_ready(io, call.number);
  }

  void on_note(Io& io, GroupParty from, const Note& note) override {
    switch (static_cast<KeyTag>(note.tag)) {
      case KeyTag::ready:
        return someone_ready(io, note.call);
      case KeyTag::reduce:
        return share(io, open_.at(note.call), note.index);
      case KeyTag::share:
        return add_share(io, note);
      case KeyTag::summed:
        return collect(io, open_.at(note.call), note.index, member(from), note.content);
      case KeyTag::pushed:
        return pushed(io, open_.at(note.call), note.index % kMostParts);
      case KeyTag::result:
        return result(io, open_.at(note.call), note.index % kMostParts, note.content);
      case KeyTag::own:
        return pass_on(io, open_.at(note.call), note.index, note.content);
      case KeyTag::gather:
        return gather(io, open_.at(note.call), note.index, member(from), note.content);
      case KeyTag::push:
      case KeyTag::pull:
        break;
    }
  }

  void on_room(Io& io) override { outbox_.on_room(io); }

 private:
  struct Open {
    Call call;
    std::shared_ptr<const KeyPieces> pieces;
    std::size_t left;  // pieces whose result is not complete
    const KeyPiece& piece(std::size_t i) const { return (*pieces)[i]; }
  };
  // A piece that the ranks of the node reduce, or whose result they share.
  struct Shared {
    Sum sum;                       // of this rank's shard
    std::size_t shares = 0;        // that it holds
    std::vector<std::byte> whole;  // root: the sums of all shards
    std::size_t summed = 0;        // root: shards in `whole`
    std::size_t gathered = 0;      // shards of the result that have come
  };
  // Waits for its turn: key, call, number of the piece.
  using Task = std::tuple<std::uint32_t, std::uint32_t, std::size_t>;

  std::size_t mates() const { return mates_.size(); }
  std::size_t member(GroupParty rank) const {
    std::size_t m = 0;
    while (mates_[m] != rank) ++m;
    return m;
  }
  std::uint64_t bytes_of_piece(const Open& o, std::size_t i) const {
    return o.piece(i).elements * bytes_of(o.call.type);
  }
  Shared& shared(std::uint32_t call, std::size_t i) {
    return shared_[std::uint64_t{call} << 32 | i];
  }

  void tell(Io& io, std::size_t to, KeyTag tag, const Call& call, std::size_t index,
            std::uint64_t elements = 0, std::span<const std::byte> content = {}) {
    Note note{.tag = static_cast<std::uint8_t>(tag), .call = call.number, .type = call.type};
    note.index = static_cast<std::uint32_t>(index);
    note.elements = elements;
    note.content = content;
    outbox_.send(io, mates_[to], note);
  }
  void to_server(Io& io, const Open& o, std::size_t i, KeyTag tag,
                 std::span<const std::byte> content, std::uint64_t elements) {
    const KeyPiece& piece = o.piece(i);
    Note note{.tag = static_cast<std::uint8_t>(tag), .call = o.call.number, .index = piece.key};
    note.type = o.call.type;
    note.elements = elements;
    note.content = content;
    const int helper = ends_.helper_in(ends_.rack_of(mates_.front()), piece.helper);
    outbox_.send(io, ends_.size() + helper, note);
  }

  // Root: queues the pieces once every rank of the node has made the call.
  void someone_ready(Io& io, std::uint32_t call) {
    if (++ready_[call] < mates()) return;
    ready_.erase(call);
    const Open& o = open_.at(call);
    for (std::size_t i = 0; i < o.pieces->size(); ++i) queue_.emplace(o.piece(i).key, call, i);
    go_on(io);
  }

  // Root: starts pieces as long as they fit the credit.
  void go_on(Io& io) {
    const std::uint64_t credit = ends_.rules().credit_bytes;
    while (!queue_.empty()) {
      const auto [key, call, i] = *queue_.begin();
      const Open& o = open_.at(call);
      const std::uint64_t bytes = bytes_of_piece(o, i);
      if (credit > 0 && under_way_ > 0 && under_way_ + bytes > credit) return;
      queue_.erase(queue_.begin());
      under_way_ += bytes;
      for (std::size_t m = 1; m < mates(); ++m) tell(io, m, KeyTag::reduce, o.call, i);
      share(io, o, i);
    }
  }

  // Sends every other rank of the node this rank's part of its shard.
  void share(Io& io, const Open& o, std::size_t i) {
    Tensor& tensor = io.tensor(o.call.number);
    if (mates() == 1) {
      const KeyPiece& piece = o.piece(i);
      return to_server(io, o, i, KeyTag::push, tensor.read(piece.first, piece.elements),
                       piece.elements);
    }
    for (std::size_t m = 0; m < mates(); ++m) {
      if (m == self_) continue;
      const Shard shard = shard_of(o.piece(i), m, mates());
      tell(io, m, KeyTag::share, o.call, i, shard.elements,
           tensor.read(shard.first, shard.elements));
    }
  }

  void add_share(Io& io, const Note& note) {
    const Open& o = open_.at(note.call);
    Shared& s = shared(note.call, note.index);
    s.sum.add(note);
    if (++s.shares < mates() - 1) return;
    const Shard shard = shard_of(o.piece(note.index), self_, mates());
    Note own{.type = o.call.type, .elements = shard.elements};
    own.content = io.tensor(note.call).read(shard.first, shard.elements);
    s.sum.add(own);
    if (self_ > 0)
      return tell(io, 0, KeyTag::summed, o.call, note.index, shard.elements, s.sum.content());
    collect(io, o, note.index, 0, s.sum.content());
  }

  // Root: has the node's sum of one more shard; pushes the piece when it has all.
  void collect(Io& io, const Open& o, std::size_t i, std::size_t from,
               std::span<const std::byte> content) {
    Shared& s = shared(o.call.number, i);
    const KeyPiece& piece = o.piece(i);
    if (!content.empty()) {
      s.whole.resize(bytes_of_piece(o, i));
      const std::uint64_t at = shard_of(piece, from, mates()).first - piece.first;
      std::copy(content.begin(), content.end(), s.whole.data() + at * bytes_of(o.call.type));
    }
    if (++s.summed < mates()) return;
    to_server(io, o, i, KeyTag::push, s.whole, piece.elements);
    s.whole = {};
  }

  // Root: a server has the piece. Its acknowledgement waits for no other node, so the credit that
  // it gives back always comes back, in whatever order nodes push.
  void pushed(Io& io, const Open& o, std::size_t i) {
    under_way_ -= bytes_of_piece(o, i);
    to_server(io, o, i, KeyTag::pull, {}, 0);
    go_on(io);
  }

  // Root: the result of a piece has come.
  void result(Io& io, Open& o, std::size_t i, std::span<const std::byte> content) {
    const KeyPiece& piece = o.piece(i);
    if (mates() == 1) {
      io.tensor(o.call.number).write(piece.first, content);
      return piece_done(io, o, i);
    }
    const auto part = [&](const Shard& shard) {
      if (content.empty()) return content;
      const std::uint64_t e = bytes_of(o.call.type);
      return content.subspan((shard.first - piece.first) * e, shard.elements * e);
    };
    for (std::size_t m = 1; m < mates(); ++m) {
      const Shard shard = shard_of(piece, m, mates());
      tell(io, m, KeyTag::own, o.call, i, shard.elements, part(shard));
    }
    pass_on(io, o, i, part(shard_of(piece, 0, mates())));
  }

  // The result of this rank's shard has come: all others get it from here.
  void pass_on(Io& io, Open& o, std::size_t i, std::span<const std::byte> content) {
    const Shard shard = shard_of(o.piece(i), self_, mates());
    for (std::size_t m = 0; m < mates(); ++m)
      if (m != self_) tell(io, m, KeyTag::gather, o.call, i, shard.elements, content);
    gather(io, o, i, self_, content);
  }

  void gather(Io& io, Open& o, std::size_t i, std::size_t from,
              std::span<const std::byte> content) {
    io.tensor(o.call.number).write(shard_of(o.piece(i), from, mates()).first, content);
    if (++shared(o.call.number, i).gathered == mates()) piece_done(io, o, i);
  }

  void piece_done(Io& io, Open& o, std::size_t i) {
    const std::uint32_t call = o.call.number;
    if (mates() > 1) shared_.erase(std::uint64_t{call} << 32 | i);
    if (--o.left > 0) return;
    open_.erase(call);
    io.done(call);
  }

  const KeyedEnds& ends_;
  const std::vector<GroupRank>& mates_;  // ranks of the node; the first is the root
  std::size_t self_ = 0;                 // this rank among them
  std::unordered_map<std::uint32_t, Open> open_;
  std::map<std::uint32_t, std::size_t> ready_;  // root: ranks of the node that made the call
  std::set<Task> queue_;
  std::uint64_t under_way_ = 0;  // bytes that give their credit back
  std::unordered_map<std::uint64_t, Shared> shared_;
  KeyOutbox outbox_;
};

}  // namespace

std::unique_ptr<Agent> key_worker(const KeyedEnds& ends, GroupRank rank) {
  return std::make_unique<Worker>(ends, rank);
}

}  // namespace ghostrank
