// A worker of the scheme `switchml`: the chunks of its rail, from its node's sums to their results.
// window_part.h decides which packet may leave when; switch/quantise.h converts floats. Where the
// switch stops answering, workers agree on how to go on (agreement.h); without it they sum
// around a ring (ring.h).
#include <algorithm>
#include <cstring>
#include <deque>
#include <list>
#include <utility>

#include "collectives/schemes/shared/kept_note.h"
#include "collectives/schemes/shared/window_part.h"
#include "collectives/schemes/switchml/agents.h"
#include "collectives/schemes/switchml/agreements.h"
#include "collectives/schemes/switchml/packets.h"
#include "collectives/schemes/switchml/ring.h"
#include "switch/quantise.h"

namespace ghostrank::switchml {
namespace {

class SwitchMlPart final : public WindowPart, private Streamer, private RingChunks {
 public:
  SwitchMlPart(std::shared_ptr<const Layout> layout, GroupRank worker);

  void start(Io& io, const Call& call, const RailShare& share, bool real) override;
  bool takes_always(const Note& note) const override {
    return agreements_ && note.tag >= kSuspect && note.tag < kGive;
  }
  MaybeChunk take(Io& io, GroupParty from, const Note& note) override;
  bool in_place() const override { return in_place_; }
  bool ended() const override { return ring_ ? ring_->ended() : WindowPart::ended(); }
  void pieces_ready(Io& io, std::uint64_t pieces) override;
  MaybeChunk next_result(Io& io) override;
  void tick(Io& io) override;
  void on_room(Io& io) override;

 private:
  unsigned first_slot() const { return layout_->options.first_slot; }
  std::uint32_t job() const { return call_.number & 0xff; }
  bool send(Io& io, const Chunk& chunk, bool again) override;
  std::span<const std::byte> contribute(Io& io, const Chunk& chunk, Contribution& packet) const;
  std::span<const std::byte> own(Io& io, std::uint64_t chunk) const;
  std::int8_t own_exponent(Io& io, std::uint64_t chunk) const;
  void fill(Io& io, std::vector<std::int32_t>& values, std::uint64_t chunk) const;
  MaybeChunk answered(Io& io, const Note& note);
  MaybeChunk complete(Io& io, const Chunk& chunk, std::int8_t exponent,
                      std::span<const std::byte> content);
  void finish(Io& io, std::uint64_t number, std::span<const std::byte> content);
  void keep(Io& io, std::uint64_t number, const RailShare::Chunk& chunk,
            std::span<const std::byte> result);

  // Agreements
  SlotList state() const override;
  void pause() override { paused_ = true; }
  void go(Io& io, const SlotList& agreed) override;
  Contribution part(std::uint16_t slot, std::uint32_t number) const override;
  void take_sum(Io& io, std::uint16_t slot, const Contribution& sum) override;

  // Without the switch
  bool has_result(std::uint64_t chunk) const override {
    return streams_ && worker_.has_values(chunk);
  }
  std::int8_t exponent(Io& io, std::uint64_t chunk) const override {
    return own_exponent(io, chunk);
  }
  void agree(std::uint64_t chunk, std::int8_t exponent) override { exponents_[chunk] = exponent; }
  std::vector<std::int32_t> values(Io& io, std::uint64_t chunk) const override;
  void finish(Io& io, std::uint64_t chunk, std::span<const std::int32_t> result) override {
    finish(io, chunk, std::as_bytes(result));
  }
  void start_ring(Io& io);
  void go_around(Io& io);

  const std::shared_ptr<const Layout> layout_;
  const GroupRank me_;
  const int node_;
  GroupParty switch_ = -1;              // of the rack
  std::vector<std::int8_t> exponents_;  // maximum over all workers, by chunk
  // By slot: the packet in flight. A copy, because an agreement may ask for it (sent_) after the
  // result has overwritten its elements.
  std::vector<Contribution> waiting_;
  bool in_place_ = false;      // in the call
  std::vector<float> floats_;  // of one result

  std::optional<Agreements> agreements_;  // empty: without the guard, or alone
  std::uint32_t epoch_ = 0;
  std::vector<std::uint32_t> completed_;  // by slot: number of the last completed packet
  std::vector<Contribution> sent_;        // ... and that packet
  int silence_ = 0;                       // ticks of waiting since the last result
  int lacking_ = 0;                       // slots whose packet is set aside until its sum comes
  std::deque<std::uint64_t> results_;     // chunks with such a sum

  bool given_up_ = false;      // the switch, for good
  bool streams_ = false;       // the call began with the switch
  std::uint64_t pieces_ = 0;   // of the call, that the node has given
  std::optional<Ring> ring_;   // of the call, without the switch
  std::list<KeptNote> early_;  // of the ring, that came before this worker could take them
  Outbox outbox_;
};

SwitchMlPart::SwitchMlPart(std::shared_ptr<const Layout> layout, GroupRank worker)
    : WindowPart(layout->rails.rail_of(worker), layout->racks.racks == 0, layout->options.slots,
                 layout->options.timeout),
      layout_(std::move(layout)),
      me_(worker),
      node_(layout_->rails.node_of(worker)) {
  if (alone()) return;
  switch_ = layout_->racks.leaf_of(rail(), node_);
  const std::uint32_t slots = layout_->options.slots;
  waiting_.resize(slots);
  if (!layout_->options.guard) return;
  for (std::uint32_t slot = 0; slot < slots; ++slot) completed_.push_back(slot - slots);
  sent_.resize(slots);
  agreements_.emplace(layout_->rails, rail(), node_, layout_->options.slots,
                      layout_->options.elements,
                      static_cast<std::uint32_t>(timers_.ticks_in(layout_->options.fallback)),
                      static_cast<Streamer&>(*this), outbox_);
}

void SwitchMlPart::start(Io& io, const Call& call, const RailShare& share, bool real) {
  const bool exponents = layout_->needs_exponents(call);
  // Sums of short floats are floats, which the tensor has no room for.
  in_place_ = !alone() && layout_->rails.on_node(node_).size() == 1 &&
              (!exponents || call.type == DataType::float32);
  begin(call, share, real, layout_->per_chunk(call));
  exponents_.assign(exponents && !alone() ? share.chunks() : 0, 0);
  if (agreements_) agreements_->begin_call();
  pieces_ = 0;
  ring_.reset();
  streams_ = !given_up_;
  if (streams_) return begin_stream(io, exponents);
  start_ring(io);
}

// The node's elements of a chunk, floats as float; until the chunk has its result.
std::span<const std::byte> SwitchMlPart::own(Io& io, std::uint64_t chunk) const {
  const RailShare::Chunk c = share_->chunk(chunk);
  if (in_place_) return io.tensor(call_.number).read(c.first, c.elements);
  return sum_.bytes(chunk,
                    c.elements * (exponents_.empty() ? bytes_of(call_.type) : sizeof(float)));
}

std::int8_t SwitchMlPart::own_exponent(Io& io, std::uint64_t chunk) const {
  return real_ ? exponent_of(own(io, chunk)) : std::int8_t{0};
}

// Zeros follow the elements of a chunk that fills no packet.
void SwitchMlPart::fill(Io& io, std::vector<std::int32_t>& values, std::uint64_t chunk) const {
  const std::span<const std::byte> elements = own(io, chunk);
  const std::span<std::byte> all = std::as_writable_bytes(std::span(values));
  if (exponents_.empty())
    std::memcpy(all.data(), elements.data(), elements.size());
  else
    quantise(elements, exponents_[chunk], layout_->rails.nodes(), values.data());
  std::ranges::fill(all.subspan(elements.size()), std::byte{0});
}

// What this worker sends for a chunk; reuses the memory of an earlier packet. Returns the elements:
// those in `packet`, or where they lie, from where the caller must copy them to `packet`.
std::span<const std::byte> SwitchMlPart::contribute(Io& io, const Chunk& chunk,
                                                    Contribution& packet) const {
  const Reach reach = share_->reach();
  const auto nodes = static_cast<std::uint64_t>(layout_->rails.nodes());
  packet.words = {.packet = number_of(chunk)};
  packet.full = reach == Reach::everyone;
  if (chunk.exponent != switchml::Window::kNone)
    packet.words.exponent = own_exponent(io, chunk.exponent);
  if (reach != Reach::everyone) {
    // A round needs somebody's elements: before the first chunk one worker after the other gives
    // and takes zeros.
    packet.words.worker = chunk.values == switchml::Window::kNone
                              ? static_cast<int>(chunk.packet % nodes)
                              : layout_->rails.node_of(share_->chunk(chunk.values).rank);
    packet.full = packet.words.worker == node_ ||
                  (reach == Reach::to_one && chunk.values != switchml::Window::kNone);
  }
  packet.values.resize(packet.full && real_ ? layout_->options.elements : 0);
  const std::span<const std::byte> values = std::as_bytes(std::span(packet.values));
  if (values.empty()) return values;
  if (chunk.values == switchml::Window::kNone) {
    std::ranges::fill(packet.values, 0);
    return values;
  }
  if (exponents_.empty())
    if (const auto elements = own(io, chunk.values); elements.size() == values.size())
      return elements;
  fill(io, packet.values, chunk.values);
  return values;
}

bool SwitchMlPart::send(Io& io, const Chunk& chunk, bool again) {
  Contribution& packet = waiting_[chunk.slot];
  const std::span<const std::byte> content =
      again ? std::as_bytes(std::span(packet.values)) : contribute(io, chunk, packet);
  Words words = packet.words;
  words.packet += epoch_;
  const Words::Bytes bytes = words.bytes(share_->reach());
  const Note note{
      .tag = static_cast<std::uint8_t>(share_->reach()),
      .call = job(),
      .index = (chunk.slot + first_slot()) | (chunk.set ? unsigned{kSetBit} : 0u),
      .type = DataType::int32,
      .elements = packet.full ? static_cast<std::uint64_t>(layout_->options.elements) : 0,
      .content = content,
      .words = bytes};
  const bool sent = io.send(switch_, note, Carriage::packet);
  // Copied after the send, because reading bytes just copied would stall on store forwarding.
  const std::span<std::byte> values = std::as_writable_bytes(std::span(packet.values));
  if (content.data() != values.data()) std::memcpy(values.data(), content.data(), content.size());
  return sent;
}

MaybeChunk SwitchMlPart::take(Io& io, GroupParty from, const Note& note) {
  if (!takes_always(note)) return answered(io, note);
  if (note.tag < kRing) {
    agreements_->take(io, from, note);
  } else {
    early_.emplace_back(from, note);
    go_around(io);
  }
  return std::nullopt;
}

MaybeChunk SwitchMlPart::answered(Io& io, const Note& note) {
  const auto reach = static_cast<Reach>(note.tag);
  if (alone() || paused_ || !begun() || note.call != job() || reach != share_->reach())
    return std::nullopt;
  const auto words = Words::read(reach, note.words);
  const std::uint64_t full = layout_->options.elements;
  if (!words || (note.elements != 0 && note.elements != full)) return std::nullopt;
  const auto slot = static_cast<std::uint16_t>((note.index & ~unsigned{kSetBit}) - first_slot());
  const auto chunk = worker_.in_flight(slot);
  // An old result may come late, when a later packet is in flight in its slot and set.
  if (!chunk || set_aside_[slot] || number_of(*chunk) + epoch_ != words->packet ||
      chunk->set != ((note.index & kSetBit) != 0))
    return std::nullopt;
  silence_ = 0;
  if (agreements_) agreements_->heard();
  return complete(io, *chunk, words->exponent, note.content);
}

// A packet has its result. Returns the chunk whose values that completes.
MaybeChunk SwitchMlPart::complete(Io& io, const Chunk& chunk, std::int8_t exponent,
                                  std::span<const std::byte> content) {
  if (agreements_) {
    completed_[chunk.slot] = number_of(chunk);
    std::swap(sent_[chunk.slot], waiting_[chunk.slot]);
  }
  worker_.result(chunk.slot, chunk.set);
  if (chunk.exponent != switchml::Window::kNone && !exponents_.empty())
    exponents_[chunk.exponent] = exponent;
  if (chunk.values != switchml::Window::kNone) finish(io, chunk.values, content);
  go_on(io);
  if (chunk.values == switchml::Window::kNone) return std::nullopt;
  return static_cast<std::uint64_t>(chunk.values);
}

// Keeps the result of a chunk, in the call's type.
void SwitchMlPart::finish(Io& io, std::uint64_t number, std::span<const std::byte> content) {
  if (content.empty()) return;  // a credit: this worker needs no elements
  const RailShare::Chunk chunk = share_->chunk(number);
  if (exponents_.empty())
    return keep(io, number, chunk, content.first(chunk.elements * bytes_of(call_.type)));
  const bool at_once = call_.type == DataType::float32 && !in_place_;
  if (!at_once) floats_.resize(chunk.elements);
  const std::span<float> floats = at_once ? sum_.floats(number).first(chunk.elements) : floats_;
  restore(content, exponents_[number], layout_->rails.nodes(), floats);
  if (call_.type != DataType::float32)
    return keep(io, number, chunk, bytes_of_floats(call_.type, floats));
  if (!at_once) keep(io, number, chunk, std::as_bytes(floats));
}

void SwitchMlPart::keep(Io& io, std::uint64_t number, const RailShare::Chunk& chunk,
                        std::span<const std::byte> result) {
  if (!in_place_) return sum_.put(number, result);
  if (share_->takes(me_, chunk)) io.tensor(call_.number).write(chunk.first, result);
}

MaybeChunk SwitchMlPart::next_result(Io& io) {
  if (!results_.empty()) {
    const std::uint64_t chunk = results_.front();
    results_.pop_front();
    return chunk;
  }
  return ring_ ? ring_->next() : WindowPart::next_result(io);
}

void SwitchMlPart::on_room(Io& io) {
  if (outbox_.flush(io)) WindowPart::on_room(io);
}

// ---- Agreements ----

void SwitchMlPart::tick(Io& io) {
  WindowPart::tick(io);
  if (!agreements_ || paused_) return;
  bool waits = false, long_since = false;
  for (std::uint16_t slot = 0; slot < worker_.window(); ++slot) {
    if (!worker_.in_flight(slot) || set_aside_[slot]) continue;
    waits = true;
    long_since |= timers_.age(slot) >= agreements_->patience();
  }
  silence_ += waits;
  if (long_since) agreements_->suspect(io);
}

SlotList SwitchMlPart::state() const {
  SlotList state;
  state.ticks = silence_;
  for (std::uint16_t slot = 0; slot < worker_.window(); ++slot) {
    const bool waits = worker_.in_flight(slot).has_value();
    // Half the patience, because workers do not send at the same time as the one that suspects.
    const bool long_since =
        waits && !set_aside_[slot] && timers_.age(slot) >= agreements_->patience() / 2;
    state.slots.push_back({completed_[slot], long_since ? Waiting::long_since
                                             : waits    ? Waiting::some
                                                        : Waiting::nothing});
  }
  return state;
}

void SwitchMlPart::go(Io& io, const SlotList& agreed) {
  given_up_ |= agreed.decision == Decision::fall_back;
  paused_ = given_up_;
  if (agreed.decision == Decision::go_on) return go_on(io);
  ++epoch_;
  for (std::uint16_t slot = 0; slot < worker_.window(); ++slot) {
    const auto chunk = worker_.in_flight(slot);
    if (!chunk || set_aside_[slot] || number_of(*chunk) != agreed.slots[slot].completed) continue;
    set_aside_[slot] = true;  // others have completed it
    ++lacking_;
  }
  if (!given_up_) return send_all_again(io);
  io.disarm(0);
  start_ring(io);
}

Contribution SwitchMlPart::part(std::uint16_t slot, std::uint32_t number) const {
  const auto chunk = worker_.in_flight(slot);
  return chunk && number_of(*chunk) == number ? waiting_[slot] : sent_[slot];
}

void SwitchMlPart::take_sum(Io& io, std::uint16_t slot, const Contribution& sum) {
  const auto chunk = worker_.in_flight(slot);
  if (!chunk || !set_aside_[slot] || number_of(*chunk) != sum.words.packet) return;
  set_aside_[slot] = false;
  --lacking_;
  const MaybeChunk values =
      complete(io, *chunk, sum.words.exponent, std::as_bytes(std::span(sum.values)));
  if (values) results_.push_back(*values);
  if (given_up_) start_ring(io);
}

// ---- Without the switch ----

std::vector<std::int32_t> SwitchMlPart::values(Io& io, std::uint64_t chunk) const {
  std::vector<std::int32_t> values(layout_->options.elements);
  fill(io, values, chunk);
  return values;
}

// Starts the ring for the rest of the call, once this worker has every result that others have.
void SwitchMlPart::start_ring(Io& io) {
  if (ring_ || lacking_ > 0 || !begun() || (streams_ && worker_.ended())) return;
  const RailShare& share = *share_;
  ring_.emplace(Ring::Location{layout_->rails, rail(), node_}, share, call_, !exponents_.empty(),
                real_, static_cast<RingChunks&>(*this), outbox_);
  if (node_ == 0 && share.chunks() > 0) io.tell(Incident::ring_call);
  go_around(io);
}

void SwitchMlPart::pieces_ready(Io& io, std::uint64_t pieces) {
  WindowPart::pieces_ready(io, pieces);
  pieces_ = pieces;
  go_around(io);
}

void SwitchMlPart::go_around(Io& io) {
  if (!ring_) return;
  ring_->ready(io, pieces_);
  for (auto note = early_.begin(); note != early_.end();)
    if (note->head.call == ring_->call() && ring_->take(io, note->note()))
      note = early_.erase(note);
    else
      ++note;
}

}  // namespace

std::unique_ptr<WorkerPart> part_of(std::shared_ptr<const Layout> layout, GroupRank worker) {
  return std::make_unique<SwitchMlPart>(std::move(layout), worker);
}

}  // namespace ghostrank::switchml
