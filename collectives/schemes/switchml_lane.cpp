// A worker of the scheme `switchml`: the chunks of its rail, from its node's sums to their results.
// window_lane.h decides which packet may leave when; switch/quantise.h converts floats.
#include <algorithm>
#include <cstring>
#include <utility>

#include "collectives/schemes/switchml_agents.h"
#include "collectives/schemes/switchml_packets.h"
#include "collectives/schemes/window_lane.h"
#include "switch/quantise.h"

namespace ghostrank::switchml {
namespace {

class SwitchMlLane final : public WindowLane {
 public:
  SwitchMlLane(std::shared_ptr<const Layout> layout, GroupRank worker);

  void start(Io& io, const Call& call, const RailShare& share, bool real) override;
  std::optional<std::uint64_t> take(Io& io, GroupParty from, const Note& note) override;

 private:
  unsigned first_slot() const { return static_cast<unsigned>(layout_->options.first_slot); }
  std::uint32_t job() const { return call_.number & 0xff; }
  bool send(Io& io, const Chunk& chunk, bool again) override;
  std::int8_t own_exponent(std::uint64_t chunk) const;
  void fill(std::vector<std::int32_t>& values, std::uint64_t chunk) const;
  void finish(std::uint64_t chunk, const Note& note);

  const std::shared_ptr<const Layout> layout_;
  const int node_;
  GroupParty switch_ = -1;              // of the rack
  std::vector<std::int8_t> exponents_;  // maximum over all workers, by chunk
};

SwitchMlLane::SwitchMlLane(std::shared_ptr<const Layout> layout, GroupRank worker)
    : WindowLane(layout->rails.rail_of(worker), layout->racks.racks == 0, layout->options.slots,
                 layout->options.timeout),
      layout_(std::move(layout)),
      node_(layout_->rails.node_of(worker)) {
  if (!alone()) switch_ = layout_->racks.leaf_of(rail(), node_);
}

void SwitchMlLane::start(Io& io, const Call& call, const RailShare& share, bool real) {
  const bool exponents = layout_->needs_exponents(call);
  begin(io, call, share, real, layout_->per_chunk(call), exponents);
  exponents_.assign(exponents && !alone() ? share.chunks() : 0, 0);
}

std::int8_t SwitchMlLane::own_exponent(std::uint64_t chunk) const {
  return real_ ? exponent_of(mine(chunk)) : std::int8_t{0};
}

void SwitchMlLane::fill(std::vector<std::int32_t>& values, std::uint64_t chunk) const {
  if (exponents_.empty()) {
    const std::span<const std::int32_t> words = sum_.words(chunk);
    std::copy(words.begin(), words.end(), values.begin());
    return;
  }
  quantise(mine(chunk), exponents_[chunk], layout_->rails.nodes(), values.data());
}

bool SwitchMlLane::send(Io& io, const Chunk& chunk, bool) {
  const Reach reach = share_->reach();
  Words words{.packet = number_of(chunk)};
  if (chunk.exponent != switchml::Worker::kNone)
    words.exponent = own_exponent(static_cast<std::uint64_t>(chunk.exponent));
  bool full = reach == Reach::everyone;
  if (chunk.values != switchml::Worker::kNone && reach != Reach::everyone) {
    const GroupRank rank = share_->chunk(static_cast<std::uint64_t>(chunk.values)).rank;
    words.worker = layout_->rails.node_of(rank);
    full = reach == Reach::to_one || words.worker == node_;
  }
  std::vector<std::int32_t> values;
  if (full && real_) values.resize(static_cast<std::size_t>(layout_->options.elements));
  if (full && real_ && chunk.values != switchml::Worker::kNone)
    fill(values, static_cast<std::uint64_t>(chunk.values));
  const std::vector<std::byte> bytes = words.bytes(reach);
  const Note note{.tag = static_cast<std::uint8_t>(reach),
                  .call = job(),
                  .index = (chunk.slot + first_slot()) | (chunk.set ? unsigned{kSetBit} : 0u),
                  .type = DataType::int32,
                  .elements = full ? static_cast<std::uint64_t>(layout_->options.elements) : 0,
                  .content = std::as_bytes(std::span(values)),
                  .words = bytes};
  return io.send(switch_, note, Carriage::packet);
}

std::optional<std::uint64_t> SwitchMlLane::take(Io& io, GroupParty, const Note& note) {
  const auto reach = static_cast<Reach>(note.tag);
  if (alone() || !begun() || note.call != job() || reach != share_->reach()) return std::nullopt;
  const auto words = Words::read(reach, note.words);
  const auto full = static_cast<std::uint64_t>(layout_->options.elements);
  if (!words || (note.elements != 0 && note.elements != full)) return std::nullopt;
  const auto slot = static_cast<std::uint16_t>((note.index & ~unsigned{kSetBit}) - first_slot());
  const auto chunk = worker_.in_flight(slot);
  // An old result may come late, when a later packet is in flight in its slot and set.
  if (!chunk || number_of(*chunk) != words->packet) return std::nullopt;
  if (!worker_.result(slot, (note.index & kSetBit) != 0)) return std::nullopt;
  if (chunk->exponent != switchml::Worker::kNone && !exponents_.empty())
    exponents_[static_cast<std::size_t>(chunk->exponent)] = words->exponent;
  if (chunk->values != switchml::Worker::kNone)
    finish(static_cast<std::uint64_t>(chunk->values), note);
  go_on(io);
  if (chunk->values == switchml::Worker::kNone) return std::nullopt;
  return static_cast<std::uint64_t>(chunk->values);
}

// Keeps the result of a chunk, in the call's type.
void SwitchMlLane::finish(std::uint64_t chunk, const Note& note) {
  if (note.content.empty()) return;  // a credit: what is to be known of the chunk is here
  const std::uint64_t elements = share_->chunk(chunk).elements;
  if (exponents_.empty())
    return sum_.put(chunk, note.content.first(elements * bytes_of(call_.type)));
  std::vector<std::int32_t> sums(elements);
  std::memcpy(sums.data(), note.content.data(), elements * sizeof(std::int32_t));
  std::vector<float> floats(elements);
  restore(sums, exponents_[chunk], layout_->rails.nodes(), floats.data());
  sum_.put(chunk, bytes_of_floats(call_.type, floats));
}

}  // namespace

std::unique_ptr<Lane> lane_of(std::shared_ptr<const Layout> layout, GroupRank worker) {
  return std::make_unique<SwitchMlLane>(std::move(layout), worker);
}

}  // namespace ghostrank::switchml
