// A worker's part of a broadcast by multicast: as the root's it sends runs of packets and counts
// credits, else it takes what comes.
#include <algorithm>
#include <vector>

#include "collectives/schemes/multicast/agents.h"
#include "collectives/schemes/shared/kept_note.h"

namespace ghostrank::multicast {
namespace {

class MulticastPart final : public WorkerPart {
 public:
  MulticastPart(std::shared_ptr<const Layout> layout, GroupRank worker)
      : WorkerPart(layout->rails.rail_of(worker)), layout_(std::move(layout)), me_(worker) {}

  bool keeps_notes() const override { return true; }
  bool ended() const override { return done_ == share_->chunks(); }

  void start(Io&, const Call& call, const RailShare& share, bool real) override {
    call_ = call;
    share_ = &share;
    real_ = real;
    ready_ = next_ = done_ = 0;
    if (real) sum_.start(share.chunks(), layout_->per_chunk(call), call.type, false);
    const int node = layout_->rails.node_of(call.collective.root);
    is_root_ = layout_->rails.worker(rail(), node) == me_;
    way_ = is_root_ ? layout_->way(rail(), me_) : Way{};
    if (is_root_) awaited_.assign(share.chunks(), way_.to.size());
  }

  void pieces_ready(Io& io, std::uint64_t pieces) override {
    ready_ = share_->first_of(pieces);
    if (is_root_) send_runs(io);
  }

  MaybeChunk take(Io& io, GroupParty from, const Note& note) override {
    if (static_cast<Tag>(note.tag) == Tag::credit) return take_credit(io, note.index);
    if (!note.content.empty()) sum_.put(note.index, note.content);
    if (static_cast<Tag>(note.tag) == Tag::data) outbox_.send(io, from, credit_for(note));
    ++done_;
    return note.index;
  }

  // A root that is alone on its rail has the result.
  MaybeChunk next_result(Io&) override {
    if (!is_root_ || !way_.to.empty() || done_ >= ready_) return std::nullopt;
    return done_++;
  }

  void on_room(Io& io) override { outbox_.flush(io); }

 private:
  void send_runs(Io& io) {
    if (way_.to.empty()) return;
    const auto most = static_cast<std::uint64_t>(layout_->options.outstanding);
    for (; next_ < ready_ && next_ < done_ + most; ++next_) {
      const std::uint64_t elements = share_->chunk(next_).elements;
      const std::vector<std::byte> words = headers(way_.header, layout_->packets(elements));
      const Note note{.tag = static_cast<std::uint8_t>(Tag::data),
                      .call = call_.number,
                      .index = static_cast<std::uint32_t>(next_),
                      .type = call_.type,
                      .elements = elements,
                      .content = real_ ? sum_.bytes(next_, elements * bytes_of(call_.type))
                                       : std::span<const std::byte>{},
                      .words = words};
      if (layout_->scheme != Multicast::unicast) {
        outbox_.send(io, way_.to, note);
      } else {
        for (const GroupParty to : way_.to) outbox_.send(io, to, note);
      }
    }
  }

  // Credits come from each receiver in order, so that the runs that all of them have, too, are
  // complete in order.
  MaybeChunk take_credit(Io& io, std::uint64_t run) {
    if (--awaited_[run] > 0) return std::nullopt;
    ++done_;
    send_runs(io);
    return run;
  }

  const std::shared_ptr<const Layout> layout_;
  const GroupRank me_;
  Call call_;
  const RailShare* share_ = nullptr;
  bool real_ = false, is_root_ = false;
  Way way_;                                        // of the root
  std::vector<std::size_t> awaited_;               // credits, by run
  std::uint64_t ready_ = 0, next_ = 0, done_ = 0;  // runs: that may leave, to leave next, ended
  Outbox outbox_;
};

}  // namespace

std::unique_ptr<WorkerPart> part_of(std::shared_ptr<const Layout> layout, GroupRank worker) {
  return std::make_unique<MulticastPart>(std::move(layout), worker);
}

}  // namespace ghostrank::multicast
