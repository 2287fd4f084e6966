// A worker of the scheme `atp`: a window of packets. The worker resends a packet whose result does
// not come in time, and sends the elements as they are when the server asks for them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "collectives/schemes/atp/agents.h"
#include "collectives/schemes/shared/window_part.h"

namespace ghostrank::atp {
namespace {

std::int32_t units_of(float number) {
  using Limits = std::numeric_limits<std::int32_t>;
  if (std::isnan(number)) return Limits::max();  // does not fit
  return static_cast<std::int32_t>(std::clamp(std::nearbyint(number * kUnits),
                                              static_cast<double>(Limits::min()),
                                              static_cast<double>(Limits::max())));
}

class AtpPart final : public WindowPart {
 public:
  AtpPart(std::shared_ptr<const Layout> layout, GroupRank worker)
      : WindowPart(layout->rails.rail_of(worker), layout->alone(), layout->options.window,
                   layout->options.timeout, layout->options.first_packet),
        layout_(std::move(layout)),
        me_(layout_->rails.node_of(worker)),
        switch_(layout_->switch_of(rail())) {}

  void start(Io& io, const Call& call, const RailShare& share, bool real) override {
    begin(call, share, real, kElements);
    begin_stream(io, false);
    plain_.assign(alone() ? 0 : share.chunks(), false);
  }

  MaybeChunk take(Io& io, GroupParty from, const Note& note) override {
    const auto words = Words::read(note.words);
    if (!words || from != switch_ || note.call != call_.number || ended()) return std::nullopt;
    const auto slot = static_cast<std::uint16_t>(words->sequence % layout_->options.window);
    const auto chunk = worker_.in_flight(slot);
    if (!chunk || number_of(*chunk) != words->sequence) return std::nullopt;
    if (static_cast<Tag>(note.tag) == Tag::ask) {
      plain_[chunk->packet] = true;
      send_now(io, *chunk, false);
      return std::nullopt;
    }
    worker_.result(slot, chunk->set);
    finish(chunk->packet, note);
    go_on(io);
    return chunk->packet;
  }

 private:
  bool send(Io& io, const Chunk& chunk, bool again) override {
    const bool plain = plain_[chunk.packet], floats = is_float(call_.type);
    std::vector<float> numbers(plain && floats && real_ ? kElements : 0);
    std::vector<std::int32_t> units(real_ && numbers.empty() ? kElements : 0);
    if (real_) {
      const std::span<const float> own = floats ? mine(chunk.packet) : std::span<const float>{};
      if (!numbers.empty())
        std::copy(own.begin(), own.end(), numbers.begin());
      else if (floats)
        std::transform(own.begin(), own.end(), units.begin(), units_of);
      else
        std::ranges::copy(sum_.words(chunk.packet), units.begin());
    }
    const auto words =
        Words{.sequence = number_of(chunk), .workers = 1u << me_, .again = again}.bytes();
    const Note note{.tag = static_cast<std::uint8_t>(plain ? Tag::raw : Tag::data),
                    .call = call_.number,
                    .index = static_cast<std::uint32_t>(chunk.packet),
                    .type = plain && floats ? DataType::float32 : DataType::int32,
                    .elements = kElements,
                    .content = numbers.empty() ? std::as_bytes(std::span(units))
                                               : std::as_bytes(std::span(numbers)),
                    .words = words};
    return io.send(switch_, note, Carriage::packet);
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
  std::vector<bool> plain_;  // chunks that are sent as they are
};

}  // namespace

std::unique_ptr<WorkerPart> part_of(std::shared_ptr<const Layout> layout, GroupRank worker) {
  return std::make_unique<AtpPart>(std::move(layout), worker);
}

}  // namespace ghostrank::atp
