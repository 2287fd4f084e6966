// A worker of the scheme `atp`: a window of packets, each of which waits for its result, is sent
// again after a while, and is sent as it is when the server asks.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "collectives/schemes/atp_agents.h"
#include "switch/worker.h"

namespace ghostrank::atp {
namespace {

using switchml::Worker;

constexpr int kTicks = 4;                 // timer ticks per time-out
constexpr std::uint32_t kPatience = 100;  // after so many time-outs in a call, double the time-out
constexpr int kSlowest = 1 << 20;         // ... but at most by this factor

std::int32_t units_of(float number) {
  using Limits = std::numeric_limits<std::int32_t>;
  if (std::isnan(number)) return Limits::max();  // does not fit
  return static_cast<std::int32_t>(std::clamp(std::nearbyint(static_cast<double>(number) * kUnits),
                                              static_cast<double>(Limits::min()),
                                              static_cast<double>(Limits::max())));
}

class AtpLane final : public Lane {
 public:
  AtpLane(std::shared_ptr<const Layout> layout, GroupRank worker)
      : Lane(layout->rails.rail_of(worker)),
        layout_(std::move(layout)),
        me_(layout_->rails.node_of(worker)),
        switch_(layout_->switch_of(rail())),
        worker_(layout_->options.window),
        ticks_(static_cast<std::size_t>(layout_->options.window)) {}

  bool ended() const override {
    return layout_->alone() ? completed_ == share_->chunks() : worker_.ended();
  }

  void start(Io& io, const Call& call, const RailShare& share, bool real) override {
    call_ = call;
    share_ = &share;
    real_ = real;
    ready_ = completed_ = 0;
    time_outs_ = 0;
    slower_ = 1;
    refused_.clear();
    if (real) sum_.start(share.chunks(), kElements, call.type, true);
    if (layout_->alone()) return;
    base_ += static_cast<std::uint32_t>(worker_.packets());
    worker_.start(share.chunks(), false);
    plain_.assign(share.chunks(), false);
    if (!worker_.ended()) io.arm(0, layout_->options.timeout / kTicks);
  }

  void pieces_ready(Io& io, std::uint64_t pieces) override {
    ready_ = share_->first_of(pieces);
    if (!layout_->alone()) send_all(io);
  }

  std::optional<std::uint64_t> take(Io& io, GroupParty from, const Note& note) override {
    const auto words = Words::read(note.words);
    if (!words || from != switch_ || note.call != call_.number || ended()) return std::nullopt;
    const auto slot = static_cast<std::uint16_t>(
        words->sequence % static_cast<std::uint32_t>(layout_->options.window));
    const auto chunk = worker_.in_flight(slot);
    if (!chunk || sequence_of(*chunk) != words->sequence) return std::nullopt;
    if (static_cast<Tag>(note.tag) == Tag::ask) {
      plain_[chunk->packet] = true;
      send(io, *chunk, false);
      return std::nullopt;
    }
    worker_.result(slot, chunk->set);
    finish(chunk->packet, note);
    send_all(io);
    if (worker_.ended()) io.disarm(0);
    return chunk->packet;
  }

  std::optional<std::uint64_t> next_result(Io&) override {
    if (!layout_->alone() || completed_ >= ready_) return std::nullopt;
    const std::uint64_t chunk = completed_++;
    if (real_ && is_float(call_.type)) sum_.put(chunk, bytes_of_floats(call_.type, mine(chunk)));
    return chunk;
  }

  void tick(Io& io) override {
    for (std::uint16_t slot = 0; slot < layout_->options.window; ++slot) {
      const auto chunk = worker_.in_flight(slot);
      if (!chunk || ++ticks_[slot] < kTicks * slower_) continue;
      send(io, *chunk, true);
      if (++time_outs_ % kPatience == 0 && slower_ < kSlowest) slower_ *= 2;
    }
    io.arm(0, layout_->options.timeout / kTicks);
  }

  void on_room(Io& io) override {
    for (const std::uint16_t slot : std::exchange(refused_, {}))
      if (const auto chunk = worker_.in_flight(slot)) send(io, *chunk, true);
  }

 private:
  std::uint32_t sequence_of(const Worker::Chunk& chunk) const {
    return base_ + static_cast<std::uint32_t>(chunk.packet);
  }
  std::vector<float> mine(std::uint64_t chunk) const {
    return sum_.floats(chunk, share_->chunk(chunk).elements);
  }

  void send_all(Io& io) {
    while (const auto next = worker_.upcoming()) {
      if (next->packet >= ready_) return;
      send(io, *worker_.next(), false);
    }
  }

  void send(Io& io, const Worker::Chunk& chunk, bool again) {
    const bool plain = plain_[chunk.packet], floats = is_float(call_.type);
    std::vector<float> numbers(plain && floats && real_ ? kElements : 0);
    std::vector<std::int32_t> units(real_ && numbers.empty() ? kElements : 0);
    if (real_) {
      const std::vector<float> own = floats ? mine(chunk.packet) : std::vector<float>{};
      if (!numbers.empty())
        std::copy(own.begin(), own.end(), numbers.begin());
      else if (floats)
        std::transform(own.begin(), own.end(), units.begin(), units_of);
      else
        std::ranges::copy(sum_.words(chunk.packet), units.begin());
    }
    const auto words =
        Words{.sequence = sequence_of(chunk), .workers = 1u << me_, .again = again}.bytes();
    const Note note{.tag = static_cast<std::uint8_t>(plain ? Tag::raw : Tag::data),
                    .call = call_.number,
                    .index = static_cast<std::uint32_t>(chunk.packet),
                    .type = plain && floats ? DataType::float32 : DataType::int32,
                    .elements = kElements,
                    .content = numbers.empty() ? std::as_bytes(std::span(units))
                                               : std::as_bytes(std::span(numbers)),
                    .words = words};
    if (!io.send(switch_, note, Carriage::packet)) refused_.push_back(chunk.slot);
    ticks_[chunk.slot] = 0;
  }

  // Keeps the result of a chunk, in the call's type.
  void finish(std::uint64_t chunk, const Note& note) {
    if (note.content.empty()) return;
    const std::uint64_t elements = share_->chunk(chunk).elements;
    if (!is_float(call_.type)) return sum_.put(chunk, note.content.first(elements * 4));
    std::vector<float> numbers(elements);
    if (static_cast<Tag>(note.tag) == Tag::plain) {
      std::memcpy(numbers.data(), note.content.data(), elements * sizeof(float));
    } else {
      const std::vector<std::int32_t> units = units_in(note);
      for (std::size_t i = 0; i < elements; ++i) numbers[i] = static_cast<float>(units[i] / kUnits);
    }
    sum_.put(chunk, bytes_of_floats(call_.type, numbers));
  }

  const std::shared_ptr<const Layout> layout_;
  const int me_;
  const GroupParty switch_;
  Call call_;
  const RailShare* share_ = nullptr;
  Worker worker_;
  std::uint32_t base_ = 0;              // packets of earlier calls
  std::uint64_t ready_ = 0;             // chunks that may leave
  std::uint64_t completed_ = 0;         // of a node alone
  std::vector<bool> plain_;             // chunks that are sent as they are
  std::vector<int> ticks_;              // since the slot's last packet was sent
  std::vector<std::uint16_t> refused_;  // slots whose packet was refused for lack of room
  std::uint32_t time_outs_ = 0;         // in the call
  int slower_ = 1;
  bool real_ = false;
};

}  // namespace

std::unique_ptr<Lane> lane_of(std::shared_ptr<const Layout> layout, GroupRank worker) {
  return std::make_unique<AtpLane>(std::move(layout), worker);
}

}  // namespace ghostrank::atp
