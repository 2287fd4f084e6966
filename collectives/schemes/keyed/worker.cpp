// The ranks of a scheme with keys; see keyed.h.
//
// A root declares a server dead after a silence of twice KeyRules::timeout_ps. Then the run ends,
// or, if KeyRules::elastic, the root pushes the pieces that the server still owes to the heir, a
// server that the key chooses. A root that has the result already gives it, so nothing is lost:
//
//   root that found out   | push > ....................... (> pull)      > result
//   heir of the key       |       > moved, to every root
//   any other root        |                > push, > result, or nothing if it has not called yet
#include <cstring>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "collectives/common/by_call.h"
#include "collectives/schemes/keyed/keyed.h"
#include "collectives/schemes/keyed/server_watch.h"
#include "collectives/schemes/shared/numbers.h"

namespace ghostrank {
namespace {

class alignas(64) Worker final : public Agent {
 public:
  Worker(const KeyedEnds& ends, GroupRank rank)
      : ends_(ends),
        mates_(ends.node_with(rank)),
        rack_(ends.rack_of(rank)),
        watch_(ends.rules().timeout_ps) {
    while (mates_[self_] != rank) ++self_;
  }

  void on_call(Io& io, const Call& call) override {
    auto pieces = ends_.pieces(call);
    if (pieces->empty()) return io.done(call.number);
    const Open& o = open_.open(call.number, call, std::move(pieces), watched());
    if (self_ > 0) return tell(io, 0, KeyTag::ready, o, 0);
    for (std::size_t i = 0; i < o.left; ++i) enter(io, o, i, Stage::coordinate_reduce);
    someone_ready(io, call.number);
  }

  void on_note(Io& io, GroupParty from, const Note& note) override {
    if (from >= ends_.size() && watched() && !watch_.hears(io, from - ends_.size())) return;
    switch (static_cast<KeyTag>(note.tag)) {
      case KeyTag::ready:
        return someone_ready(io, note.call);
      case KeyTag::reduce:
        return share(io, open_.at(note.call), note.index);
      case KeyTag::share:
        return add_share(io, member(from), note);
      case KeyTag::summed:
        return collect(io, open_.at(note.call), note.index, member(from), note.content);
      case KeyTag::pushed:
        return pushed(io, open_.at(note.call), note.index % kMostParts);
      case KeyTag::result:
        return result(io, open_.at(note.call), note.index % kMostParts, note);
      case KeyTag::moved:
        return moved(io, from, note);
      case KeyTag::own:
        return pass_on(io, open_.at(note.call), note.index, note.content);
      case KeyTag::gather:
        return gather(io, open_.at(note.call), note.index, member(from), note.content);
      case KeyTag::push:
      case KeyTag::pull:
      case KeyTag::probe:
      case KeyTag::alive:
        break;
    }
  }

  void on_timer(Io& io, std::uint32_t timer) override {
    const auto server = static_cast<int>(timer);
    if (watch_.on_timer(io, server) == ServerWatch::Verdict::dead) return lose(io, server);
    Note probe{.tag = static_cast<std::uint8_t>(KeyTag::probe)};
    outbox_.send(io, ends_.size() + server, probe);
  }

  void on_room(Io& io) override { outbox_.on_room(io); }

  void expect(GroupParty, std::uint32_t call, std::uint32_t) const override {
    open_.prefetch(call);
  }

 private:
  // What a server owes for a piece.
  enum class Owed : std::uint8_t { nothing, acknowledgement, result };
  struct Open {
    Open(const Call& of, std::shared_ptr<const KeyPieces> cut, bool watched)
        : call(of.number),
          type(of.type),
          pieces(std::move(cut)),
          left(pieces->size()),
          owed(watched ? left : 0) {}
    std::uint32_t call;  // its number
    DataType type;
    std::shared_ptr<const KeyPieces> pieces;
    std::size_t left;        // pieces whose result is not complete
    std::vector<Owed> owed;  // by piece; empty: nobody watches servers
    const KeyPiece& piece(std::size_t i) const { return (*pieces)[i]; }
    void owes(std::size_t i, Owed what) {
      if (!owed.empty()) owed[i] = what;
    }
  };
  // What the root keeps of a key from call to call.
  struct Key {
    std::optional<PieceCodec> codec;  // where pieces travel compressed
    std::uint64_t results = 0;        // so far
    Note last{};                      // elastic: the last one, which an heir may ask for
    std::vector<std::byte> content;   // its elements
  };
  // A piece that the ranks of the node reduce, or whose result they share.
  struct Shared {
    std::size_t shares = 0;                               // of this rank's shard that have come
    std::map<std::size_t, std::vector<std::byte>> parts;  // their elements, by member
    std::vector<std::byte> whole;                         // root: the sums of all shards
    std::size_t summed = 0;                               // root: shards in `whole`
    std::size_t gathered = 0;                             // shards of the result that have come
  };
  // A piece that waits for its turn: key, call, number of the piece.
  using Task = std::tuple<std::uint32_t, std::uint32_t, std::size_t>;

  std::size_t mates() const { return mates_.size(); }
  std::size_t member(GroupParty rank) const {
    std::size_t m = 0;
    while (mates_[m] != rank) ++m;
    return m;
  }
  void enter(Io& io, const Open& o, std::size_t i, Stage stage) {
    io.enter(o.call, static_cast<std::uint32_t>(i), stage);
  }
  std::uint64_t bytes_of_piece(const Open& o, std::size_t i) const {
    return o.piece(i).elements * bytes_of(o.type);
  }
  Shared& shared(std::uint32_t call, std::size_t i) {
    return shared_[std::uint64_t{call} << 32 | i];
  }

  void tell(Io& io, std::size_t to, KeyTag tag, const Open& o, std::size_t index,
            std::uint64_t elements = 0, std::span<const std::byte> content = {}) {
    Note note{.tag = static_cast<std::uint8_t>(tag), .call = o.call, .type = o.type};
    note.index = static_cast<std::uint32_t>(index);
    note.elements = elements;
    note.content = content;
    outbox_.send(io, mates_[to], note);
  }
  // Whether roots watch servers; else `watch_` is not asked.
  bool watched() const { return ends_.rules().timeout_ps > 0; }
  bool is_dead(int server) const { return watched() && watch_.dead().contains(server); }
  // The server that sums the key now.
  int server_of(const KeyPiece& piece) const {
    if (is_dead(piece.helper)) return ends_.heir(piece.key, watch_.dead());
    return ends_.helper_in(rack_, piece.helper);
  }
  // Sends a note to the server of a piece; to an heir, with the number of the dead server.
  void to_server(Io& io, const Open& o, std::size_t i, Note note) {
    const KeyPiece& piece = o.piece(i);
    note.call = o.call;
    note.index = piece.key;
    const auto dead = static_cast<std::uint32_t>(piece.helper);
    if (is_dead(piece.helper)) note.words = std::as_bytes(std::span(&dead, 1));
    outbox_.send(io, ends_.size() + server_of(piece), note);
  }

  // Root: begins the pieces, or queues them, once every rank of the node has made the call.
  void someone_ready(Io& io, std::uint32_t call) {
    if (mates() > 1) {
      if (++ready_[call] < mates()) return;
      ready_.erase(call);
    }
    const Open& o = open_.at(call);
    const std::size_t pieces = o.pieces->size();
    if (!has_credit()) {
      for (std::size_t i = 0; i < pieces; ++i) begin(io, o, i);
      return;
    }
    for (std::size_t i = 0; i < pieces; ++i) queue_.emplace(o.piece(i).key, call, i);
    go_on(io);
  }

  // Otherwise pieces never wait.
  bool has_credit() const { return ends_.rules().credit_bytes > 0; }

  // Root: begins pieces as long as they fit the credit.
  void go_on(Io& io) {
    while (!queue_.empty()) {
      const auto [key, call, i] = *queue_.begin();
      const Open& o = open_.at(call);
      const std::uint64_t bytes = bytes_of_piece(o, i);
      if (under_way_ > 0 && under_way_ + bytes > ends_.rules().credit_bytes) return;
      queue_.erase(queue_.begin());
      begin(io, o, i);
    }
  }

  void begin(Io& io, const Open& o, std::size_t i) {
    under_way_ += bytes_of_piece(o, i);
    if (mates() > 1) enter(io, o, i, Stage::reduce);
    for (std::size_t m = 1; m < mates(); ++m) tell(io, m, KeyTag::reduce, o, i);
    share(io, o, i);
  }

  // Sends every other rank of the node this rank's part of its shard.
  void share(Io& io, const Open& o, std::size_t i) {
    Tensor& tensor = io.tensor(o.call);
    if (mates() == 1) {
      const KeyPiece& piece = o.piece(i);
      return push(io, open_.at(o.call), i, tensor.read(piece.first, piece.elements));
    }
    for (std::size_t m = 0; m < mates(); ++m) {
      if (m == self_) continue;
      const PieceShard shard = shard_of(o.piece(i), m, mates());
      tell(io, m, KeyTag::share, o, i, shard.elements, tensor.read(shard.first, shard.elements));
    }
  }

  // Adds the shares in the order of ranks, not of arrival, because sums of floats depend on the
  // order.
  void add_share(Io& io, std::size_t from, const Note& note) {
    const Open& o = open_.at(note.call);
    Shared& s = shared(note.call, note.index);
    if (!note.content.empty()) s.parts[from].assign(note.content.begin(), note.content.end());
    if (++s.shares < mates() - 1) return;
    const PieceShard shard = shard_of(o.piece(note.index), self_, mates());
    const auto own = io.tensor(note.call).read(shard.first, shard.elements);
    if (!own.empty()) s.parts[self_].assign(own.begin(), own.end());
    Sum sum;
    for (const auto& [member, part] : s.parts)
      sum.add({.type = o.type, .elements = shard.elements, .content = part});
    s.parts.clear();
    if (self_ > 0) return tell(io, 0, KeyTag::summed, o, note.index, shard.elements, sum.content());
    collect(io, open_.at(note.call), note.index, 0, sum.content());
  }

  // Root: has the node's sum of one more shard; pushes the piece when it has all.
  void collect(Io& io, Open& o, std::size_t i, std::size_t from,
               std::span<const std::byte> content) {
    Shared& s = shared(o.call, i);
    const KeyPiece& piece = o.piece(i);
    if (!content.empty()) {
      s.whole.resize(bytes_of_piece(o, i));
      const std::uint64_t at = shard_of(piece, from, mates()).first - piece.first;
      std::copy(content.begin(), content.end(), s.whole.data() + at * bytes_of(o.type));
    }
    if (++s.summed < mates()) return;
    push(io, o, i, s.whole);
    if (!ends_.rules().elastic) s.whole = {};
  }

  // Root: hands the node's sum of a piece to its server.
  void push(Io& io, Open& o, std::size_t i, std::span<const std::byte> content) {
    const KeyPiece& piece = o.piece(i);
    Note note{.tag = static_cast<std::uint8_t>(KeyTag::push)};
    note.type = o.type;
    note.elements = piece.elements;
    note.content = content;
    std::vector<std::byte> payload;
    if (const PieceCompression* how = ends_.compression(piece.key)) {
      enter(io, o, i, Stage::compress);
      io.spend(how->time(piece.elements).compress);
      note.type = how->method->payload;
      if (content.empty()) {
        note.elements = how->payloads(piece.elements).piece;
      } else {
        payload = codec(piece, *how).compress(floats_of(DataType::float32, content));
        note.elements = payload.size() / bytes_of(note.type);
      }
      note.content = payload;
    }
    enter(io, o, i, Stage::push);
    o.owes(i, Owed::acknowledgement);
    if (watched()) watch_.owes(io, server_of(piece));
    to_server(io, o, i, note);
  }

  PieceCodec& codec(const KeyPiece& piece, const PieceCompression& how) {
    std::optional<PieceCodec>& own = keys_[piece.key].codec;
    if (!own) own.emplace(how, how.memory, piece.key, mates_.front(), piece.elements);
    return *own;
  }

  // Root: a server has the piece. Its acknowledgement waits for no other node, so the credit that
  // it gives back always comes back, in whatever order nodes push.
  void pushed(Io& io, Open& o, std::size_t i) {
    under_way_ -= bytes_of_piece(o, i);
    o.owes(i, Owed::result);
    enter(io, o, i, Stage::pull);
    to_server(io, o, i, {.tag = static_cast<std::uint8_t>(KeyTag::pull)});
    if (has_credit()) go_on(io);
  }

  // Root: the result of a piece has come.
  void result(Io& io, Open& o, std::size_t i, const Note& note) {
    const KeyPiece& piece = o.piece(i);
    std::span<const std::byte> content = note.content;
    if (watched()) watch_.paid(io, server_of(piece));
    o.owes(i, Owed::nothing);
    const PieceCompression* how = ends_.compression(piece.key);
    std::vector<std::byte> whole;
    if (how || ends_.rules().elastic) {
      Key& key = keys_[piece.key];
      const std::uint64_t round = key.results++;
      if (how) content = whole = decompress(io, o, i, *how, round, note);
      if (ends_.rules().elastic) {
        key.last = {.tag = static_cast<std::uint8_t>(KeyTag::result), .call = o.call};
        key.last.index = piece.key;
        key.last.type = o.type;
        key.last.elements = piece.elements;
        key.content.assign(content.begin(), content.end());
      }
    }
    if (mates() == 1) {
      io.tensor(o.call).write(piece.first, content);
      return piece_done(io, o, i);
    }
    enter(io, o, i, Stage::broadcast);
    const auto part = [&](const PieceShard& shard) {
      if (content.empty()) return content;
      const std::uint64_t e = bytes_of(o.type);
      return content.subspan((shard.first - piece.first) * e, shard.elements * e);
    };
    for (std::size_t m = 1; m < mates(); ++m) {
      const PieceShard shard = shard_of(piece, m, mates());
      tell(io, m, KeyTag::own, o, i, shard.elements, part(shard));
    }
    pass_on(io, o, i, part(shard_of(piece, 0, mates())));
  }

  std::vector<std::byte> decompress(Io& io, const Open& o, std::size_t i,
                                    const PieceCompression& how, std::uint64_t round,
                                    const Note& note) {
    const KeyPiece& piece = o.piece(i);
    enter(io, o, i, Stage::decompress);
    io.spend(how.time(piece.elements).decompress);
    if (!holds_payload(note)) return {};
    return bytes_of_floats(
        DataType::float32,
        PieceCodec::decompressed(how, piece.key, round, note.content, piece.elements));
  }

  // The result of this rank's shard has come: all others get it from here.
  void pass_on(Io& io, Open& o, std::size_t i, std::span<const std::byte> content) {
    const PieceShard shard = shard_of(o.piece(i), self_, mates());
    for (std::size_t m = 0; m < mates(); ++m)
      if (m != self_) tell(io, m, KeyTag::gather, o, i, shard.elements, content);
    gather(io, o, i, self_, content);
  }

  void gather(Io& io, Open& o, std::size_t i, std::size_t from,
              std::span<const std::byte> content) {
    io.tensor(o.call).write(shard_of(o.piece(i), from, mates()).first, content);
    if (++shared(o.call, i).gathered == mates()) piece_done(io, o, i);
  }

  void piece_done(Io& io, Open& o, std::size_t i) {
    const std::uint32_t call = o.call;
    if (self_ == 0) enter(io, o, i, Stage::none);
    if (mates() > 1) shared_.erase(std::uint64_t{call} << 32 | i);
    if (--o.left > 0) return;
    open_.close(call);
    io.done(call);
  }

  // Root: a server is dead. Pushes the pieces that it owes to their heirs.
  void lose(Io& io, int server) {
    if (watch_.dead().contains(server)) return;
    std::vector<std::pair<Open*, std::size_t>> owed;
    open_.for_each([&](Open& o) {
      for (std::size_t i = 0; i < o.owed.size(); ++i)
        if (o.owed[i] != Owed::nothing && server_of(o.piece(i)) == server) owed.emplace_back(&o, i);
    });
    // Roots that bury a second one in another order would choose different heirs.
    const std::string before =
        watch_.dead().empty() ? "" : ", nor did server " + std::to_string(*watch_.dead().begin());
    watch_.bury(io, server);
    if (!ends_.rules().elastic || !before.empty() || ends_.heir(0, watch_.dead()) < 0)
      return io.give_up("server " + std::to_string(server) + " does not answer" + before);
    for (const auto& [o, i] : owed) push_again(io, *o, i);
  }

  void push_again(Io& io, Open& o, std::size_t i) {
    const KeyPiece& piece = o.piece(i);
    if (o.owed[i] == Owed::result) under_way_ += bytes_of_piece(o, i);
    if (mates() > 1) return push(io, o, i, shared(o.call, i).whole);
    push(io, o, i, io.tensor(o.call).read(piece.first, piece.elements));
  }

  // Root: another root has found a server dead, and has pushed the owed pieces to the heir.
  void moved(Io& io, GroupParty heir, const Note& note) {
    std::uint32_t dead = 0;
    std::memcpy(&dead, note.words.data(), sizeof dead);
    lose(io, static_cast<int>(dead));
    const auto known = keys_.find(note.index);
    if (known == keys_.end() || known->second.results == 0) return;
    Note last = known->second.last;
    if (last.call != note.call) return;
    last.content = known->second.content;
    outbox_.send(io, heir, last);
  }

  // Most notes touch these two cache lines alone.
  const KeyedEnds& ends_;
  const std::vector<GroupRank>& mates_;  // ranks of the node; the first is the root
  std::uint32_t self_ = 0;               // this rank among them
  const int rack_;
  ByCall<Open> open_;
  std::uint64_t under_way_ = 0;  // bytes that use credit
  KeyOutbox outbox_;

  ServerWatch watch_;
  std::set<Task> queue_;
  std::map<std::uint32_t, std::size_t> ready_;  // root: ranks of the node that made the call
  std::unordered_map<std::uint64_t, Shared> shared_;
  std::unordered_map<std::uint32_t, Key> keys_;
};

}  // namespace

std::unique_ptr<Agent> key_worker(const KeyedEnds& ends, GroupRank rank) {
  return std::make_unique<Worker>(ends, rank);
}

}  // namespace ghostrank
