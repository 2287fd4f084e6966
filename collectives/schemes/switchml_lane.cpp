// A worker of the scheme `switchml`: the chunks of its rail, from its node's sums to their results.
// It decides which packet may leave when; switch/worker.h is the window, switch/quantise.h the
// conversion of floats.
#include <algorithm>
#include <cstring>
#include <utility>

#include "collectives/schemes/switchml_agents.h"
#include "collectives/schemes/switchml_packets.h"
#include "switch/quantise.h"
#include "switch/worker.h"

namespace ghostrank::switchml {
namespace {

constexpr int kTicks = 4;                 // timer ticks per time-out
constexpr std::uint32_t kPatience = 100;  // after so many time-outs in a job, double the time-out
constexpr int kSlowest = 1 << 20;         // ... but at most by this factor

class SwitchMlLane final : public Lane {
 public:
  SwitchMlLane(std::shared_ptr<const Layout> layout, GroupRank worker);

  void start(Io& io, const Call& call, const RailShare& share, bool real) override;
  void pieces_ready(Io& io, std::uint64_t pieces) override;
  std::optional<std::uint64_t> take(Io& io, GroupParty from, const Note& note) override;
  bool ended() const override { return alone() ? completed_ == share_->chunks() : worker_.ended(); }
  std::optional<std::uint64_t> next_result(Io&) override;

  void tick(Io& io) override;
  void on_room(Io& io) override;

 private:
  bool alone() const { return layout_->racks.racks == 0; }
  unsigned first_slot() const { return static_cast<unsigned>(layout_->options.first_slot); }
  std::uint32_t job() const { return call_.number & 0xff; }
  std::uint32_t number_of(const Worker::Chunk& chunk) const {
    return first_packet_ + static_cast<std::uint32_t>(chunk.packet);
  }
  void send_all(Io& io);
  void send(Io& io, const Worker::Chunk& chunk);
  std::int8_t own_exponent(std::uint64_t chunk) const;
  void fill(std::vector<std::int32_t>& values, std::uint64_t chunk) const;
  void finish(std::uint64_t chunk, const Note& note);

  const std::shared_ptr<const Layout> layout_;
  const int node_;
  GroupParty switch_ = -1;  // of the rack
  Call call_;
  const RailShare* share_ = nullptr;
  Worker worker_;
  std::uint32_t first_packet_ = 0;      // of the call; numbers wrap
  std::uint64_t ready_ = 0;             // chunks that may leave
  std::uint64_t completed_ = 0;         // without a switch
  std::vector<std::int8_t> exponents_;  // maximum over all workers, by chunk
  std::vector<int> ticks_;              // since the slot's last packet was sent
  std::vector<std::uint16_t> refused_;  // slots whose packet was refused for lack of room
  std::uint32_t time_outs_ = 0;         // in the call
  int slower_ = 1;
  bool real_ = false;  // true if the ranks of the call hold real data
};

SwitchMlLane::SwitchMlLane(std::shared_ptr<const Layout> layout, GroupRank worker)
    : Lane(layout->rails.rail_of(worker)),
      layout_(std::move(layout)),
      node_(layout_->rails.node_of(worker)),
      worker_(layout_->options.slots) {
  if (alone()) return;
  switch_ = layout_->racks.leaf_of(rail(), node_);
  ticks_.resize(static_cast<std::size_t>(layout_->options.slots));
}

void SwitchMlLane::start(Io& io, const Call& call, const RailShare& share, bool real) {
  call_ = call;
  share_ = &share;
  real_ = real;
  ready_ = completed_ = 0;
  time_outs_ = 0;
  slower_ = 1;
  refused_.clear();
  if (real_)
    sum_.start(share.chunks(), layout_->per_chunk(call), call.type, reduces(call.collective.func));
  if (alone()) return;
  const bool exponents = layout_->needs_exponents(call);
  first_packet_ += static_cast<std::uint32_t>(worker_.packets());
  worker_.start(share.chunks(), exponents);
  exponents_.assign(exponents ? share.chunks() : 0, 0);
  if (!worker_.ended()) io.arm(0, layout_->options.timeout / kTicks);
}

void SwitchMlLane::pieces_ready(Io& io, std::uint64_t pieces) {
  ready_ = share_->first_of(pieces);
  if (!alone()) send_all(io);
}

void SwitchMlLane::send_all(Io& io) {
  while (const auto next = worker_.upcoming()) {
    if (std::max(next->values, next->exponent) >= static_cast<std::int64_t>(ready_)) return;
    send(io, *worker_.next());
  }
}

std::int8_t SwitchMlLane::own_exponent(std::uint64_t chunk) const {
  return real_ ? exponent_of(sum_.floats(chunk, share_->chunk(chunk).elements)) : std::int8_t{0};
}

void SwitchMlLane::fill(std::vector<std::int32_t>& values, std::uint64_t chunk) const {
  if (exponents_.empty()) {
    const std::span<const std::int32_t> words = sum_.words(chunk);
    std::copy(words.begin(), words.end(), values.begin());
    return;
  }
  const std::uint64_t elements = share_->chunk(chunk).elements;
  quantise(sum_.floats(chunk, elements), exponents_[chunk], layout_->rails.nodes(), values.data());
}

void SwitchMlLane::send(Io& io, const Worker::Chunk& chunk) {
  const Reach reach = share_->reach();
  Words words{.packet = number_of(chunk)};
  if (chunk.exponent != Worker::kNone)
    words.exponent = own_exponent(static_cast<std::uint64_t>(chunk.exponent));
  bool full = reach == Reach::everyone;
  if (chunk.values != Worker::kNone && reach != Reach::everyone) {
    const GroupRank rank = share_->chunk(static_cast<std::uint64_t>(chunk.values)).rank;
    words.worker = layout_->rails.node_of(rank);
    full = reach == Reach::to_one || words.worker == node_;
  }
  std::vector<std::int32_t> values;
  if (full && real_) values.resize(static_cast<std::size_t>(layout_->options.elements));
  if (full && real_ && chunk.values != Worker::kNone)
    fill(values, static_cast<std::uint64_t>(chunk.values));
  const std::vector<std::byte> bytes = words.bytes(reach);
  const Note note{.tag = static_cast<std::uint8_t>(reach),
                  .call = job(),
                  .index = (chunk.slot + first_slot()) | (chunk.set ? unsigned{kSetBit} : 0u),
                  .type = DataType::int32,
                  .elements = full ? static_cast<std::uint64_t>(layout_->options.elements) : 0,
                  .content = std::as_bytes(std::span(values)),
                  .words = bytes};
  if (!io.send(switch_, note, Carriage::packet)) refused_.push_back(chunk.slot);
  ticks_[chunk.slot] = 0;
}

std::optional<std::uint64_t> SwitchMlLane::take(Io& io, GroupParty, const Note& note) {
  const auto reach = static_cast<Reach>(note.tag);
  if (alone() || !share_ || note.call != job() || reach != share_->reach()) return std::nullopt;
  const auto words = Words::read(reach, note.words);
  const auto full = static_cast<std::uint64_t>(layout_->options.elements);
  if (!words || (note.elements != 0 && note.elements != full)) return std::nullopt;
  const auto slot = static_cast<std::uint16_t>((note.index & ~unsigned{kSetBit}) - first_slot());
  const auto chunk = worker_.in_flight(slot);
  // An old result may come late, when a later packet is in flight in its slot and set.
  if (!chunk || number_of(*chunk) != words->packet) return std::nullopt;
  if (!worker_.result(slot, (note.index & kSetBit) != 0)) return std::nullopt;
  if (chunk->exponent != Worker::kNone && !exponents_.empty())
    exponents_[static_cast<std::size_t>(chunk->exponent)] = words->exponent;
  if (chunk->values != Worker::kNone) finish(static_cast<std::uint64_t>(chunk->values), note);
  send_all(io);
  if (worker_.ended()) io.disarm(0);
  if (chunk->values == Worker::kNone) return std::nullopt;
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

std::optional<std::uint64_t> SwitchMlLane::next_result(Io&) {
  if (!alone() || completed_ >= ready_) return std::nullopt;
  const std::uint64_t chunk = completed_++;
  if (real_ && is_float(call_.type) && reduces(call_.collective.func))
    sum_.put(chunk, bytes_of_floats(call_.type, sum_.floats(chunk, share_->chunk(chunk).elements)));
  return chunk;
}

// Resends the packet of a slot after kTicks * slower_ ticks without a result.
void SwitchMlLane::tick(Io& io) {
  for (std::uint16_t slot = 0; slot < layout_->options.slots; ++slot) {
    const auto chunk = worker_.in_flight(slot);
    if (!chunk || ++ticks_[slot] < kTicks * slower_) continue;
    send(io, *chunk);
    if (++time_outs_ % kPatience == 0 && slower_ < kSlowest) slower_ *= 2;
  }
  io.arm(0, layout_->options.timeout / kTicks);
}

void SwitchMlLane::on_room(Io& io) {
  for (const std::uint16_t slot : std::exchange(refused_, {}))
    if (const auto chunk = worker_.in_flight(slot)) send(io, *chunk);
}

}  // namespace

std::unique_ptr<Lane> lane_of(std::shared_ptr<const Layout> layout, GroupRank worker) {
  return std::make_unique<SwitchMlLane>(std::move(layout), worker);
}

}  // namespace ghostrank::switchml
