#include "collectives/schemes/shared/member.h"

#include <algorithm>
#include <deque>
#include <list>
#include <optional>
#include <stdexcept>

#include "collectives/schemes/shared/kept_note.h"

namespace ghostrank {
namespace {

class Member final : public Agent {
 public:
  Member(std::shared_ptr<const MemberLayout> layout, GroupRank rank,
         std::unique_ptr<WorkerPart> part)
      : layout_(std::move(layout)),
        rails_(layout_->rails),
        me_(rank),
        node_(rails_.node_of(rank)),
        part_(std::move(part)) {}

  void on_call(Io& io, const Call& call) override {
    calls_.push_back(call);
    if (calls_.size() == 1) start(io);
  }

  void on_note(Io& io, GroupParty from, const Note& note) override {
    const bool inside = note.tag == kGive || note.tag == kHand;
    const bool always = part_ && part_->takes_always(note);
    if (!always && (inside || (part_ && part_->keeps_notes()))) {
      if (calls_.empty() || note.call != call().number) return keep(from, note);
    }
    if (always || !calls_.empty()) take(io, from, note);
    end_calls(io);
  }

  void on_timer(Io& io, std::uint32_t) override { part_->tick(io); }
  void on_room(Io& io) override {
    if (outbox_.flush(io) && part_) part_->on_room(io);  // may send notes of ended calls, too
  }

 private:
  struct Piece {             // of the worker's rail
    int missing = 0;         // ranks of the node that have not given it yet
    std::uint64_t left = 0;  // chunks without a result
  };

  const Call& call() const { return calls_.front(); }
  std::uint32_t element() const { return bytes_of(call().type); }
  const std::vector<GroupRank>& local() const { return rails_.on_node(node_); }

  // ---- A call begins and ends ----

  void start(Io& io) {
    begin(io);
    end_calls(io);
  }

  void begin(Io& io) {
    real_ = call().collective.count > 0 && !io.tensor(call().number).read(0, 1).empty();
    shares_.clear();
    shares_.reserve(rails_.rails());
    expected_ = 0;
    for (int rail = 0; rail < rails_.rails(); ++rail) {
      shares_.emplace_back(rails_, rail, call(), layout_->per_chunk(call()));
      if (rails_.worker(rail, node_) != me_) expected_ += shares_.back().notes_to(me_);
    }
    give(io);
    if (part_) begin_part(io);
    for (auto kept = kept_.begin(); kept != kept_.end();) {
      if (kept->head.call == call().number) {
        take(io, kept->party, kept->note());
        kept = kept_.erase(kept);
      } else {
        ++kept;
      }
    }
  }

  // Ends the call if this rank's part is done, and starts the next one.
  void end_calls(Io& io) {
    while (!calls_.empty() && expected_ == 0 && (!part_ || part_->ended())) {
      io.done(call().number);
      calls_.pop_front();
      if (!calls_.empty()) begin(io);
    }
  }

  // ---- Inside the node ----

  void keep(GroupParty from, const Note& note) { kept_.emplace_back(from, note); }

  void take(Io& io, GroupParty from, const Note& note) {
    if (note.tag != kGive && note.tag != kHand) {
      if (!part_) return;
      if (const auto chunk = part_->take(io, from, note)) complete(io, *chunk);
      return take_results(io);
    }
    const int rail = static_cast<int>(note.index) % rails_.rails();
    const std::uint64_t piece = note.index / rails_.rails();
    if (note.tag == kGive) return gather(io, from, piece, note.content);
    accept(io, shares_[rail], piece, note.content);
    --expected_;
    if (shares_[rail].reach() == Reach::to_one) return;
    if (const GroupRank next = after(me_, rail); next != kNoRank)
      send(io, next, kHand, rail, piece, note.elements, note.content);
  }

  void send(Io& io, GroupRank to, std::uint8_t tag, int rail, std::uint64_t piece,
            std::uint64_t elements, std::span<const std::byte> content) {
    const Note note{.tag = tag,
                    .call = call().number,
                    .index = static_cast<std::uint32_t>(piece) * rails_.rails() + rail,
                    .type = call().type,
                    .elements = elements,
                    .content = content};
    outbox_.send(io, to, note);
  }

  // Gives my elements to the workers on the node, to all rails in turn, so that all begin at once.
  void give(Io& io) {
    std::uint64_t pieces = 0;
    for (const RailShare& share : shares_) pieces = std::max(pieces, share.pieces());
    for (std::uint64_t piece = 0; piece < pieces; ++piece)
      for (int i = 0; i < rails_.rails(); ++i) {
        const int rail = (rails_.rail_of(me_) + i) % rails_.rails();
        const GroupRank worker = rails_.worker(rail, node_);
        if (worker == me_ || piece >= shares_[rail].pieces()) continue;
        if (const std::uint64_t elements = given_by(me_, shares_[rail], piece); elements > 0)
          send(io, worker, kGive, rail, piece, elements, mine(io, shares_[rail], piece));
      }
  }

  static std::uint64_t given_by(GroupRank r, const RailShare& share, std::uint64_t piece) {
    return share.elements(piece, share.reach() == Reach::from_one ? r : kNoRank);
  }
  std::vector<std::byte> mine(Io& io, const RailShare& share, std::uint64_t piece) {
    std::vector<std::byte> content;
    if (!real_) return content;
    content.reserve(given_by(me_, share, piece) * element());
    for (std::uint64_t c = share.first_of(piece); c < share.first_of(piece + 1); ++c) {
      const RailShare::Chunk chunk = share.chunk(c);
      if (!share.gives(me_, chunk)) continue;
      const auto elements = io.tensor(call().number).read(chunk.first, chunk.elements);
      content.insert(content.end(), elements.begin(), elements.end());
    }
    return content;
  }

  // Writes a result that a worker has handed on.
  void accept(Io& io, const RailShare& share, std::uint64_t piece,
              std::span<const std::byte> content) {
    Tensor& tensor = io.tensor(call().number);
    if (content.empty()) return tensor.write(0, {});
    std::size_t at = 0;
    for (std::uint64_t c = share.first_of(piece); c < share.first_of(piece + 1); ++c) {
      const RailShare::Chunk chunk = share.chunk(c);
      if (share.reach() == Reach::to_one && chunk.rank != me_) continue;
      const std::size_t bytes = chunk.elements * element();
      if (share.takes(me_, chunk)) tensor.write(chunk.first, content.subspan(at, bytes));
      at += bytes;
    }
  }

  // The rank that takes a rail's results from r; kNoRank: r is the last.
  GroupRank after(GroupRank r, int rail) const {
    const std::vector<GroupRank>& all = local();
    std::size_t at = std::find(all.begin(), all.end(), r) - all.begin();
    for (;;) {
      at = (at + 1) % all.size();
      if (all[at] == rails_.worker(rail, node_)) return kNoRank;
      if (shares_[rail].notes_to(all[at]) > 0) return all[at];
    }
  }

  // ---- As a worker ----

  void begin_part(Io& io) {
    const RailShare& share = shares_[part_->rail()];
    part_->start(io, call(), share, real_);
    pieces_.assign(share.pieces(), {});
    whole_ = 0;
    for (std::uint64_t piece = 0; piece < share.pieces(); ++piece) {
      pieces_[piece].left = share.first_of(piece + 1) - share.first_of(piece);
      for (const GroupRank r : local())
        pieces_[piece].missing += r != me_ && given_by(r, share, piece) > 0;
      if (real_ && !part_->in_place()) add_mine(io, share, piece);
    }
    go_on(io);
  }

  void add_mine(Io& io, const RailShare& share, std::uint64_t piece) {
    Tensor& tensor = io.tensor(call().number);
    for (std::uint64_t c = share.first_of(piece); c < share.first_of(piece + 1); ++c) {
      const RailShare::Chunk chunk = share.chunk(c);
      if (share.gives(me_, chunk)) part_->sum().add(c, tensor.read(chunk.first, chunk.elements));
    }
  }

  // Adds what rank r gives of a piece.
  void add(const RailShare& share, std::uint64_t piece, GroupRank r,
           std::span<const std::byte> content) {
    std::size_t at = 0;
    for (std::uint64_t c = share.first_of(piece); c < share.first_of(piece + 1); ++c) {
      const RailShare::Chunk chunk = share.chunk(c);
      if (!share.gives(r, chunk)) continue;
      const std::size_t bytes = chunk.elements * element();
      part_->sum().add(c, content.subspan(at, bytes));
      at += bytes;
    }
  }

  void gather(Io& io, GroupRank from, std::uint64_t piece, std::span<const std::byte> content) {
    if (real_ && !content.empty()) add(shares_[part_->rail()], piece, from, content);
    --pieces_[piece].missing;
    go_on(io);
  }

  // Lets pieces leave, in order, once all ranks of the node have given them.
  void go_on(Io& io) {
    while (whole_ < pieces_.size() && pieces_[whole_].missing == 0) ++whole_;
    part_->pieces_ready(io, whole_);
    take_results(io);
  }

  void take_results(Io& io) {
    while (const auto chunk = part_->next_result(io)) complete(io, *chunk);
  }

  // The result of a chunk is there.
  void complete(Io& io, std::uint64_t number) {
    const RailShare& share = shares_[part_->rail()];
    if (!(real_ && part_->in_place())) write_result(io, share, number);
    const std::uint64_t piece = share.piece_of(number);
    if (--pieces_[piece].left == 0) hand(io, share, piece);
  }

  void write_result(Io& io, const RailShare& share, std::uint64_t number) {
    const RailShare::Chunk chunk = share.chunk(number);
    if (!share.takes(me_, chunk)) return;
    Tensor& tensor = io.tensor(call().number);
    tensor.write(chunk.first, real_ ? part_->sum().bytes(number, chunk.elements * element())
                                    : std::span<const std::byte>{});
  }

  void hand(Io& io, const RailShare& share, std::uint64_t piece) {
    if (share.reach() == Reach::to_one) {
      for (const GroupRank r : local())
        if (const std::uint64_t elements = r == me_ ? 0 : share.elements(piece, r); elements > 0)
          send(io, r, kHand, part_->rail(), piece, elements, results(share, piece, r));
    } else if (const GroupRank next = after(me_, part_->rail()); next != kNoRank) {
      send(io, next, kHand, part_->rail(), piece, share.elements(piece),
           results(share, piece, kNoRank));
    }
  }

  std::vector<std::byte> results(const RailShare& share, std::uint64_t piece, GroupRank of) {
    std::vector<std::byte> content;
    if (!real_) return content;
    for (std::uint64_t c = share.first_of(piece); c < share.first_of(piece + 1); ++c) {
      const RailShare::Chunk chunk = share.chunk(c);
      if (of != kNoRank && chunk.rank != of) continue;
      const auto bytes = part_->sum().bytes(c, chunk.elements * element());
      content.insert(content.end(), bytes.begin(), bytes.end());
    }
    return content;
  }

  const std::shared_ptr<const MemberLayout> layout_;
  const Rails& rails_;
  const GroupRank me_;
  const int node_;
  std::deque<Call> calls_;         // open calls; the first is played
  std::vector<RailShare> shares_;  // of the call, by rail
  std::uint64_t expected_ = 0;     // notes with results that are still to come
  std::list<KeptNote> kept_;       // notes of later calls
  Outbox outbox_;
  const std::unique_ptr<WorkerPart> part_;  // null: the rank is no worker
  std::vector<Piece> pieces_;
  std::uint64_t whole_ = 0;  // pieces that the node has given, without a gap
  bool real_ = false;        // ranks hold real data
};

// The elements of rank `of` (kNoRank: all), one note a piece.
void add_pieces(std::vector<Ends::Edge>& edges, const RailShare& share, std::uint32_t element,
                std::uint64_t overhead, GroupParty from, GroupParty to, GroupRank of) {
  Ends::Edge edge{from, to, 0, 0, Carriage::reliable};
  for (std::uint64_t piece = 0; piece < share.pieces(); ++piece) {
    const std::uint64_t elements = share.elements(piece, of);
    if (elements == 0) continue;
    ++edge.messages;
    edge.bytes += overhead + elements * element;
  }
  if (edge.messages > 0) edges.push_back(edge);
}

// Adds what the ranks of a node give the worker of a rail in a call, and what comes back.
void add_inside(std::vector<Ends::Edge>& edges, const Rails& rails, const RailShare& share,
                const Call& call, int rail, int node, std::uint64_t overhead) {
  const std::uint32_t element = bytes_of(call.type);
  const std::vector<GroupRank>& local = rails.on_node(node);
  const GroupRank worker = rails.worker(rail, node);
  const std::size_t at = std::find(local.begin(), local.end(), worker) - local.begin();
  GroupRank from = worker;
  for (std::size_t i = 1; i < local.size(); ++i) {
    const GroupRank r = local[(at + i) % local.size()];
    const bool alone = share.reach() == Reach::from_one;
    add_pieces(edges, share, element, overhead, r, worker, alone ? r : kNoRank);
    if (share.reach() == Reach::to_one) {
      add_pieces(edges, share, element, overhead, worker, r, r);
    } else if (share.notes_to(r) > 0) {
      add_pieces(edges, share, element, overhead, from, r, kNoRank);
      from = r;
    }
  }
}

}  // namespace

Site& needed(Site* site) {
  if (!site) throw std::logic_error("this helper is made by agent_at()");
  return *site;
}

std::unique_ptr<Agent> MemberEnds::member(GroupRank rank) const {
  return std::make_unique<Member>(members_, rank, members_->is_worker(rank) ? part(rank) : nullptr);
}

std::unique_ptr<Agent> MemberEnds::agent(GroupParty party) const {
  return party < size() ? member(party) : helper(party, nullptr);
}

std::unique_ptr<Agent> MemberEnds::agent_at(GroupParty party, Site& site) const {
  return party < size() ? member(party) : helper(party, &site);
}

std::vector<Ends::Edge> MemberEnds::traffic(const Call& call) const {
  std::vector<Edge> edges;
  const Rails& rails = members_->rails;
  for (int rail = 0; rail < rails.rails(); ++rail) {
    const RailShare share(rails, rail, call, members_->per_chunk(call));
    for (int node = 0; node < rails.nodes(); ++node)
      add_inside(edges, rails, share, call, rail, node, overhead_);
    if (rails.nodes() > 1 && share.chunks() > 0) add_outside(edges, call, rail, share);
  }
  return edges;
}

}  // namespace ghostrank
