// A worker of the scheme `sharp`: asks for a tree, then sends its messages up, or around the ring.
//
// Around the ring, chunk c starts at worker c % n; after n - 1 hops it is the sum, after n - 1 more
// everybody has it.
#include <cstring>
#include <list>
#include <vector>

#include "collectives/schemes/shared/kept_note.h"
#include "collectives/schemes/sharp/agents.h"

namespace ghostrank::sharp {
namespace {

enum class Way : std::uint8_t { unknown, tree, ring };

class SharpPart final : public WorkerPart {
 public:
  SharpPart(std::shared_ptr<const Layout> layout, GroupRank worker)
      : WorkerPart(layout->rails.rail_of(worker)),
        layout_(std::move(layout)),
        me_(layout_->rails.node_of(worker)),
        workers_(layout_->rails.nodes()) {}

  bool keeps_notes() const override { return true; }
  bool ended() const override { return done_ == share_->chunks(); }

  void start(Io& io, const Call& call, const RailShare& share, bool real) override {
    call_ = call;
    share_ = &share;
    real_ = real;
    ready_ = next_ = done_ = 0;
    if (real) sum_.start(share.chunks(), layout_->per_chunk(call), call.type, true);
    if (workers_ == 1 || asked_ || share.chunks() == 0) return;
    asked_ = true;
    send(io, layout_->racks.leaf_of(rail(), me_), Tag::ask, 0, 0, {}, {});
  }

  void pieces_ready(Io& io, std::uint64_t pieces) override {
    ready_ = share_->first_of(pieces);
    go_on(io);
  }

  MaybeChunk take(Io& io, GroupParty from, const Note& note) override {
    switch (static_cast<Tag>(note.tag)) {
      case Tag::answer:
        way_ = note.index == 1 ? Way::tree : Way::ring;
        go_on(io);
        return std::nullopt;
      case Tag::down:
        return finish(io, note.index, note.content);
      case Tag::ring:
        if (way_ == Way::ring && note.index < ready_) return hop(io, note);
        early_.emplace_back(from, note);
        return std::nullopt;
      default:
        return std::nullopt;
    }
  }

  MaybeChunk next_result(Io& io) override {
    if (workers_ > 1) return next_early(io);
    if (done_ >= ready_) return std::nullopt;
    const std::uint64_t chunk = done_++;
    if (real_) sum_.put(chunk, mine(chunk));
    return chunk;
  }

  void on_room(Io& io) override { outbox_.flush(io); }

 private:
  // The node's sum of a chunk, in the call's type.
  std::vector<std::byte> mine(std::uint64_t chunk) const {
    const std::uint64_t elements = share_->chunk(chunk).elements;
    if (is_float(call_.type))
      return bytes_of_floats(call_.type, sum_.floats(chunk).first(elements));
    const auto bytes = sum_.bytes(chunk, elements * bytes_of(call_.type));
    return {bytes.begin(), bytes.end()};
  }

  void send(Io& io, GroupParty to, Tag tag, std::uint64_t index, std::uint64_t elements,
            std::span<const std::byte> content, std::span<const std::byte> words) {
    const Note note{.tag = static_cast<std::uint8_t>(tag),
                    .call = call_.number,
                    .index = static_cast<std::uint32_t>(index),
                    .type = call_.type,
                    .elements = elements,
                    .content = content,
                    .words = words};
    outbox_.send(io, to, note);
  }

  void go_on(Io& io) {
    if (way_ == Way::tree) {
      const std::uint64_t most = layout_->options.outstanding;
      for (; next_ < ready_ && next_ < done_ + most; ++next_)
        send_mine(io, layout_->racks.leaf_of(rail(), me_), Tag::up, next_, {});
    }
    if (way_ != Way::ring) return;
    for (; next_ < ready_; ++next_)
      if (static_cast<int>(next_ % workers_) == me_)
        send_mine(io, successor(), Tag::ring, next_, hop_words(1));
  }

  void send_mine(Io& io, GroupParty to, Tag tag, std::uint64_t chunk,
                 std::span<const std::byte> words) {
    send(io, to, tag, chunk, share_->chunk(chunk).elements,
         real_ ? mine(chunk) : std::vector<std::byte>{}, words);
  }

  GroupParty successor() const { return layout_->rails.worker(rail(), (me_ + 1) % workers_); }
  std::span<const std::byte> hop_words(std::uint32_t hops) {
    words_.resize(sizeof hops);
    std::memcpy(words_.data(), &hops, sizeof hops);
    return words_;
  }

  // Goes on with messages of the ring that came before this node's sums, or before the answer.
  // Returns the first chunk that they complete.
  MaybeChunk next_early(Io& io) {
    for (auto kept = early_.begin(); way_ == Way::ring && kept != early_.end();) {
      if (kept->head.index >= ready_) {
        ++kept;
        continue;
      }
      const KeptNote message = std::move(*kept);
      kept = early_.erase(kept);
      if (const auto chunk = hop(io, message.note())) return chunk;
    }
    return std::nullopt;
  }

  MaybeChunk hop(Io& io, const Note& note) {
    std::uint32_t hops = 0;
    std::memcpy(&hops, note.words.data(), sizeof hops);
    const std::uint32_t n = workers_;
    std::vector<std::byte> content(note.content.begin(), note.content.end());
    if (hops < n && real_)
      add_elements(call_.type, content.data(), mine(note.index).data(), note.elements);
    if (hops < 2 * n - 2)
      send(io, successor(), Tag::ring, note.index, note.elements, content, hop_words(hops + 1));
    if (hops < n - 1) return std::nullopt;
    return finish(io, note.index, content);
  }

  MaybeChunk finish(Io& io, std::uint64_t chunk, std::span<const std::byte> content) {
    if (!content.empty()) sum_.put(chunk, content);
    ++done_;
    go_on(io);
    return chunk;
  }

  const std::shared_ptr<const Layout> layout_;
  const int me_, workers_;  // this worker and how many there are, on the rail
  Call call_;
  const RailShare* share_ = nullptr;
  bool real_ = false, asked_ = false;
  Way way_ = Way::unknown;
  std::uint64_t ready_ = 0, next_ = 0, done_ = 0;  // chunks: that may leave, to leave next, ended
  std::list<KeptNote> early_;                      // of the ring, before this node's sums
  Outbox outbox_;
  std::vector<std::byte> words_;
};

}  // namespace

std::unique_ptr<WorkerPart> part_of(std::shared_ptr<const Layout> layout, GroupRank worker) {
  return std::make_unique<SharpPart>(std::move(layout), worker);
}

}  // namespace ghostrank::sharp
