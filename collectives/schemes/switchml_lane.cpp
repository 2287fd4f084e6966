// A worker of the scheme `switchml`: the chunks of its rail, from its node's sums to their results.
// window_lane.h decides which packet may leave when; switch/quantise.h converts floats. Where the
// switch stops to answer, switchml_agreement.h says how workers go on, and switchml_ring.h how they
// do without it.
#include <algorithm>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <utility>

#include "collectives/schemes/kept_note.h"
#include "collectives/schemes/switchml_agents.h"
#include "collectives/schemes/switchml_agreement.h"
#include "collectives/schemes/switchml_packets.h"
#include "collectives/schemes/switchml_ring.h"
#include "collectives/schemes/window_lane.h"
#include "switch/quantise.h"

namespace ghostrank::switchml {
namespace {

constexpr int kPatience = 8 * SlotTimers::kTicks;  // after which a packet has waited for long
constexpr int kMostPatience = 1 << 28;

// What a worker sends in a packet.
struct Packet {
  Words words;  // with the packet's own number
  bool full = false;
  std::vector<std::int32_t> values;  // of a full one, if ranks hold real data

  // Adds what another worker has sent in the same packet.
  void add(const Words& other, bool other_full, std::span<const std::byte> content) {
    words.exponent = std::max(words.exponent, other.exponent);
    full |= other_full;
    if (content.empty()) return;
    values.resize(content.size() / sizeof values[0]);
    add_elements(DataType::int32, reinterpret_cast<std::byte*>(values.data()), content.data(),
                 values.size());
  }
};

class SwitchMlLane final : public WindowLane, private RingChunks {
 public:
  SwitchMlLane(std::shared_ptr<const Layout> layout, GroupRank worker);

  void start(Io& io, const Call& call, const RailShare& share, bool real) override;
  bool takes_always(const Note& note) const override {
    return recovers() && note.tag >= kSuspect && note.tag < kGive;
  }
  std::optional<std::uint64_t> take(Io& io, GroupParty from, const Note& note) override;
  bool ended() const override { return ring_ ? ring_->ended() : WindowLane::ended(); }
  void pieces_ready(Io& io, std::uint64_t pieces) override;
  std::optional<std::uint64_t> next_result(Io& io) override;
  void tick(Io& io) override;
  void on_room(Io& io) override;

 private:
  // The parts of a packet that some workers lack, as the speaker adds them up.
  struct Parts {
    int missing = 0;
    Packet sum;
    std::vector<int> lacking;  // workers
  };

  unsigned first_slot() const { return static_cast<unsigned>(layout_->options.first_slot); }
  std::uint32_t job() const { return call_.number & 0xff; }
  bool send(Io& io, const Chunk& chunk, bool again) override;
  Packet packet_of(const Chunk& chunk) const;
  std::int8_t own_exponent(std::uint64_t chunk) const;
  void fill(std::vector<std::int32_t>& values, std::uint64_t chunk) const;
  std::optional<std::uint64_t> answered(Io& io, const Note& note);
  std::optional<std::uint64_t> complete(Io& io, const Chunk& chunk, std::int8_t exponent,
                                        std::span<const std::byte> content);
  void finish(std::uint64_t chunk, std::span<const std::byte> content);

  // Agreements
  bool recovers() const { return !alone() && layout_->options.guard; }
  bool speaks() const { return node_ == 0; }
  GroupParty worker(int node) const { return layout_->rails.worker(rail(), node); }
  void tell(Io& io, int node, std::uint8_t tag, std::uint32_t index = 0,
            std::span<const std::byte> words = {}, const Packet* packet = nullptr);
  void tell_others(Io& io, std::uint8_t tag);
  void list(Io& io, int node, std::uint8_t tag, const SlotList& slots);
  void suspect(Io& io);
  void begin_agreement(Io& io);
  SlotList state() const;
  void take_state(Io& io, int worker, std::span<const std::byte> bytes);
  void conclude(Io& io);
  void go(Io& io, const SlotList& agreed);
  void give_part(Io& io, std::uint16_t slot, std::uint32_t number);
  void take_part(Io& io, std::uint16_t slot, const Words& words, const Note& note);
  void take_sum(Io& io, std::uint16_t slot, const Words& words, std::span<const std::byte> content);

  // Without the switch
  bool has_result(std::uint64_t chunk) const override {
    return streams_ && worker_.has_values(chunk);
  }
  std::int8_t exponent(std::uint64_t chunk) const override { return own_exponent(chunk); }
  void agree(std::uint64_t chunk, std::int8_t exponent) override { exponents_[chunk] = exponent; }
  std::vector<std::int32_t> values(std::uint64_t chunk) const override;
  void finish(std::uint64_t chunk, std::span<const std::int32_t> result) override {
    finish(chunk, std::as_bytes(result));
  }
  void start_ring(Io& io);
  void go_around(Io& io);

  const std::shared_ptr<const Layout> layout_;
  const int node_;
  GroupParty switch_ = -1;              // of the rack
  std::vector<std::int8_t> exponents_;  // maximum over all workers, by chunk

  std::uint32_t epoch_ = 0;
  std::vector<std::uint32_t> completed_;  // by slot: the number of the last packet that is
  std::vector<Packet> sent_;              // ... and what this worker has sent in it
  // Ticks after which a packet has waited for long: twice as many after an agreement since whose
  // predecessor the speaker has heard nothing, else half as many. So slow answers are waited for.
  int patience_ = 0;
  bool heard_ = false;                    // something of the switch, since the last agreement
  int silence_ = 0;                       // ticks in which nothing came of what was waited for
  bool suspected_ = false;                // since the last agreement
  std::uint32_t agreements_ = 0;          // that this worker knows of
  SlotList agreed_;                       // as far as it has come
  std::optional<Agreement> agreement_;    // in progress; of the speaker
  std::map<std::uint16_t, Parts> parts_;  // by slot; of the speaker
  int lacking_ = 0;                       // slots whose packet is set aside until its sum comes
  bool given_up_ = false;                 // the switch is
  std::uint64_t pieces_ = 0;              // of the call, that the node has given
  bool streams_ = false;                  // the call began with the switch
  std::optional<Ring> ring_;              // of the call, without the switch
  std::list<KeptNote> early_;             // of the ring, before this worker has come so far
  std::deque<std::uint64_t> results_;     // chunks with a sum from the speaker
  Outbox outbox_;
};

SwitchMlLane::SwitchMlLane(std::shared_ptr<const Layout> layout, GroupRank worker)
    : WindowLane(layout->rails.rail_of(worker), layout->racks.racks == 0, layout->options.slots,
                 layout->options.timeout),
      layout_(std::move(layout)),
      node_(layout_->rails.node_of(worker)) {
  if (alone()) return;
  switch_ = layout_->racks.leaf_of(rail(), node_);
  if (!recovers()) return;
  const auto slots = static_cast<std::uint32_t>(layout_->options.slots);
  for (std::uint32_t slot = 0; slot < slots; ++slot) completed_.push_back(slot - slots);
  sent_.resize(slots);
}

void SwitchMlLane::start(Io& io, const Call& call, const RailShare& share, bool real) {
  const bool exponents = layout_->needs_exponents(call);
  begin(call, share, real, layout_->per_chunk(call));
  exponents_.assign(exponents && !alone() ? share.chunks() : 0, 0);
  patience_ = kPatience;
  pieces_ = 0;
  ring_.reset();
  streams_ = !given_up_;
  if (streams_) return begin_stream(io, exponents);
  start_ring(io);
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

Packet SwitchMlLane::packet_of(const Chunk& chunk) const {
  const Reach reach = share_->reach();
  Packet packet{{.packet = number_of(chunk)}, reach == Reach::everyone, {}};
  if (chunk.exponent != switchml::Worker::kNone)
    packet.words.exponent = own_exponent(static_cast<std::uint64_t>(chunk.exponent));
  if (chunk.values != switchml::Worker::kNone && reach != Reach::everyone) {
    const GroupRank rank = share_->chunk(static_cast<std::uint64_t>(chunk.values)).rank;
    packet.words.worker = layout_->rails.node_of(rank);
    packet.full = reach == Reach::to_one || packet.words.worker == node_;
  }
  if (!packet.full || !real_) return packet;
  packet.values.resize(static_cast<std::size_t>(layout_->options.elements));
  if (chunk.values != switchml::Worker::kNone)
    fill(packet.values, static_cast<std::uint64_t>(chunk.values));
  return packet;
}

bool SwitchMlLane::send(Io& io, const Chunk& chunk, bool) {
  Packet packet = packet_of(chunk);
  packet.words.packet += epoch_;
  const std::vector<std::byte> bytes = packet.words.bytes(share_->reach());
  const Note note{
      .tag = static_cast<std::uint8_t>(share_->reach()),
      .call = job(),
      .index = (chunk.slot + first_slot()) | (chunk.set ? unsigned{kSetBit} : 0u),
      .type = DataType::int32,
      .elements = packet.full ? static_cast<std::uint64_t>(layout_->options.elements) : 0,
      .content = std::as_bytes(std::span(packet.values)),
      .words = bytes};
  return io.send(switch_, note, Carriage::packet);
}

std::optional<std::uint64_t> SwitchMlLane::take(Io& io, GroupParty from, const Note& note) {
  if (!takes_always(note)) return answered(io, note);
  switch (note.tag) {
    case kSuspect:
      if (note.call == agreements_ && !agreement_ && !given_up_) begin_agreement(io);
      break;
    case kStop:
      agreements_ = note.call;
      paused_ = true;
      list(io, 0, kState, state());
      break;
    case kState:
      take_state(io, layout_->rails.node_of(from), note.words);
      break;
    case kGo:
      agreed_.add(note.words);
      if (agreed_.slots.size() == completed_.size()) go(io, std::exchange(agreed_, {}));
      break;
    case kPart:
    case kSum: {
      const auto words = Words::read(Reach::to_one, note.words);
      const auto slot = static_cast<std::uint16_t>(note.index);
      if (!words) break;
      if (note.tag == kPart)
        take_part(io, slot, *words, note);
      else
        take_sum(io, slot, *words, note.content);
      break;
    }
    default:
      early_.emplace_back(from, note);
      go_around(io);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> SwitchMlLane::answered(Io& io, const Note& note) {
  const auto reach = static_cast<Reach>(note.tag);
  if (alone() || paused_ || !begun() || note.call != job() || reach != share_->reach())
    return std::nullopt;
  const auto words = Words::read(reach, note.words);
  const auto full = static_cast<std::uint64_t>(layout_->options.elements);
  if (!words || (note.elements != 0 && note.elements != full)) return std::nullopt;
  const auto slot = static_cast<std::uint16_t>((note.index & ~unsigned{kSetBit}) - first_slot());
  const auto chunk = worker_.in_flight(slot);
  // An old result may come late, when a later packet is in flight in its slot and set.
  if (!chunk || set_aside_[slot] || number_of(*chunk) + epoch_ != words->packet ||
      chunk->set != ((note.index & kSetBit) != 0))
    return std::nullopt;
  silence_ = 0;
  heard_ = true;
  return complete(io, *chunk, words->exponent, note.content);
}

// A packet has its result. Returns the chunk whose values that completes.
std::optional<std::uint64_t> SwitchMlLane::complete(Io& io, const Chunk& chunk,
                                                    std::int8_t exponent,
                                                    std::span<const std::byte> content) {
  if (recovers()) {
    completed_[chunk.slot] = number_of(chunk);
    sent_[chunk.slot] = packet_of(chunk);
  }
  worker_.result(chunk.slot, chunk.set);
  if (chunk.exponent != switchml::Worker::kNone && !exponents_.empty())
    exponents_[static_cast<std::size_t>(chunk.exponent)] = exponent;
  if (chunk.values != switchml::Worker::kNone)
    finish(static_cast<std::uint64_t>(chunk.values), content);
  go_on(io);
  if (chunk.values == switchml::Worker::kNone) return std::nullopt;
  return static_cast<std::uint64_t>(chunk.values);
}

// Keeps the result of a chunk, in the call's type.
void SwitchMlLane::finish(std::uint64_t chunk, std::span<const std::byte> content) {
  if (content.empty()) return;  // a credit: what is to be known of the chunk is here
  const std::uint64_t elements = share_->chunk(chunk).elements;
  if (exponents_.empty()) return sum_.put(chunk, content.first(elements * bytes_of(call_.type)));
  std::vector<std::int32_t> sums(elements);
  std::memcpy(sums.data(), content.data(), elements * sizeof(std::int32_t));
  std::vector<float> floats(elements);
  restore(sums, exponents_[chunk], layout_->rails.nodes(), floats.data());
  sum_.put(chunk, bytes_of_floats(call_.type, floats));
}

std::optional<std::uint64_t> SwitchMlLane::next_result(Io& io) {
  if (!results_.empty()) {
    const std::uint64_t chunk = results_.front();
    results_.pop_front();
    return chunk;
  }
  return ring_ ? ring_->next() : WindowLane::next_result(io);
}

void SwitchMlLane::on_room(Io& io) {
  if (outbox_.flush(io)) WindowLane::on_room(io);
}

// ---- Agreements ----

void SwitchMlLane::tick(Io& io) {
  WindowLane::tick(io);
  if (!recovers() || paused_) return;
  bool waits = false, long_since = false;
  for (std::uint16_t slot = 0; slot < worker_.window(); ++slot) {
    if (!worker_.in_flight(slot) || set_aside_[slot]) continue;
    waits = true;
    long_since |= timers_.age(slot) >= patience_;
  }
  silence_ += waits;
  if (long_since && !std::exchange(suspected_, true)) suspect(io);
}

void SwitchMlLane::tell(Io& io, int node, std::uint8_t tag, std::uint32_t index,
                        std::span<const std::byte> words, const Packet* packet) {
  Note note{.tag = tag, .call = agreements_, .index = index, .type = DataType::int32};
  note.words = words;
  if (packet && packet->full) {
    note.elements = static_cast<std::uint64_t>(layout_->options.elements);
    note.content = std::as_bytes(std::span(packet->values));
  }
  outbox_.send(io, worker(node), note);
}

void SwitchMlLane::tell_others(Io& io, std::uint8_t tag) {
  for (int node = 0; node < layout_->rails.nodes(); ++node)
    if (node != node_) tell(io, node, tag);
}

void SwitchMlLane::list(Io& io, int node, std::uint8_t tag, const SlotList& slots) {
  for (std::size_t first = 0; first < slots.slots.size(); first += SlotList::kMost) {
    const std::size_t count = std::min(SlotList::kMost, slots.slots.size() - first);
    tell(io, node, tag, static_cast<std::uint32_t>(first), slots.bytes(first, count));
  }
}

void SwitchMlLane::suspect(Io& io) {
  if (!speaks()) return tell(io, 0, kSuspect);
  if (!agreement_) begin_agreement(io);
}

void SwitchMlLane::begin_agreement(Io& io) {
  ++agreements_;
  agreement_.emplace(layout_->rails.nodes(), layout_->options.slots);
  paused_ = true;
  tell_others(io, kStop);
  const SlotList mine = state();
  take_state(io, node_, mine.bytes(0, mine.slots.size()));
}

SlotList SwitchMlLane::state() const {
  SlotList state;
  state.ticks = static_cast<std::uint32_t>(silence_);
  for (std::uint16_t slot = 0; slot < worker_.window(); ++slot) {
    const bool waits = worker_.in_flight(slot).has_value();
    // Half the patience: nobody has sent at the same time as the one that suspects.
    const bool long_since = waits && !set_aside_[slot] && timers_.age(slot) >= patience_ / 2;
    state.slots.push_back({completed_[slot], long_since ? Waiting::long_since
                                             : waits    ? Waiting::some
                                                        : Waiting::nothing});
  }
  return state;
}

void SwitchMlLane::take_state(Io& io, int worker, std::span<const std::byte> bytes) {
  agreement_->add(worker, bytes);
  if (agreement_->whole()) conclude(io);
}

// All states are there.
void SwitchMlLane::conclude(Io& io) {
  const int fallback = timers_.ticks_in(layout_->options.fallback);
  SlotList agreed = agreement_->decide(static_cast<std::uint32_t>(fallback));
  agreed.ticks = static_cast<std::uint32_t>(heard_ ? std::max(kPatience, patience_ / 2)
                                                   : std::min(2 * patience_, kMostPatience));
  for (std::uint16_t slot = 0; slot < worker_.window(); ++slot) {
    SlotState& state = agreed.slots[slot];
    state.parts &= agreed.verdict != Verdict::go_on && !parts_.contains(slot);
    if (state.parts)
      parts_[slot] = {layout_->rails.nodes(),
                      {{.packet = state.completed}, false, {}},
                      agreement_->lacking(slot)};
  }
  agreement_.reset();
  for (int node = 0; node < layout_->rails.nodes(); ++node)
    if (node != node_) list(io, node, kGo, agreed);
  if (agreed.verdict == Verdict::restart) io.tell(Incident::restart);
  if (agreed.verdict == Verdict::fall_back) io.tell(Incident::fallback);
  go(io, agreed);
}

void SwitchMlLane::go(Io& io, const SlotList& agreed) {
  suspected_ = heard_ = false;
  patience_ = static_cast<int>(agreed.ticks);
  given_up_ |= agreed.verdict == Verdict::fall_back;
  paused_ = given_up_;
  if (agreed.verdict != Verdict::go_on) {
    ++epoch_;
    for (std::uint16_t slot = 0; slot < worker_.window(); ++slot) {
      const SlotState& state = agreed.slots[slot];
      const auto chunk = worker_.in_flight(slot);
      const bool lacks = chunk && !set_aside_[slot] && number_of(*chunk) == state.completed;
      if (lacks) set_aside_[slot] = true;
      lacking_ += lacks;
      if (state.parts) give_part(io, slot, state.completed);
    }
  }
  if (given_up_) {
    io.disarm(0);
    start_ring(io);
  } else if (agreed.verdict == Verdict::restart) {
    send_all_again(io);
  } else {
    go_on(io);
  }
}

// Gives the speaker what this worker has sent in a packet: it has completed it, or lacks it.
void SwitchMlLane::give_part(Io& io, std::uint16_t slot, std::uint32_t number) {
  const auto chunk = worker_.in_flight(slot);
  const bool lacks = chunk && number_of(*chunk) == number;
  const Packet packet = lacks ? packet_of(*chunk) : sent_[slot];
  if (!speaks()) return tell(io, 0, kPart, slot, packet.words.bytes(Reach::to_one), &packet);
  take_part(
      io, slot, packet.words,
      {.elements = packet.full ? 1u : 0u, .content = std::as_bytes(std::span(packet.values))});
}

void SwitchMlLane::take_part(Io& io, std::uint16_t slot, const Words& words, const Note& note) {
  const auto parts = parts_.find(slot);
  if (parts == parts_.end()) return;
  parts->second.sum.add(words, note.elements > 0, note.content);
  if (--parts->second.missing > 0) return;
  const Parts whole = std::move(parts->second);
  parts_.erase(parts);
  const Packet& sum = whole.sum;
  for (const int node : whole.lacking)
    if (node != node_)
      tell(io, node, kSum, slot, sum.words.bytes(Reach::to_one), &sum);
    else
      take_sum(io, slot, sum.words, std::as_bytes(std::span(sum.values)));
}

void SwitchMlLane::take_sum(Io& io, std::uint16_t slot, const Words& words,
                            std::span<const std::byte> content) {
  const auto chunk = worker_.in_flight(slot);
  if (!chunk || number_of(*chunk) != words.packet || !set_aside_[slot]) return;
  set_aside_[slot] = false;
  --lacking_;
  if (const auto values = complete(io, *chunk, words.exponent, content))
    results_.push_back(*values);
  if (given_up_) start_ring(io);
}

// ---- Without the switch ----

std::vector<std::int32_t> SwitchMlLane::values(std::uint64_t chunk) const {
  std::vector<std::int32_t> values(static_cast<std::size_t>(layout_->options.elements));
  fill(values, chunk);
  return values;
}

// Starts the ring for what is left of the call, once this worker has all that others have.
void SwitchMlLane::start_ring(Io& io) {
  if (ring_ || lacking_ > 0 || !begun() || (streams_ && worker_.ended())) return;
  const RailShare& share = *share_;
  ring_.emplace(Ring::Place{layout_->rails, rail(), node_}, share, call_, !exponents_.empty(),
                real_, static_cast<RingChunks&>(*this), outbox_);
  if (speaks() && share.chunks() > 0) io.tell(Incident::ring_call);
  go_around(io);
}

void SwitchMlLane::pieces_ready(Io& io, std::uint64_t pieces) {
  WindowLane::pieces_ready(io, pieces);
  pieces_ = pieces;
  go_around(io);
}

void SwitchMlLane::go_around(Io& io) {
  if (!ring_) return;
  ring_->ready(io, pieces_);
  for (auto note = early_.begin(); note != early_.end();)
    if (note->head.call == ring_->call() && ring_->take(io, note->note()))
      note = early_.erase(note);
    else
      ++note;
}

}  // namespace

std::unique_ptr<Lane> lane_of(std::shared_ptr<const Layout> layout, GroupRank worker) {
  return std::make_unique<SwitchMlLane>(std::move(layout), worker);
}

}  // namespace ghostrank::switchml
