#include "collectives/schemes/switchml.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <deque>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "collectives/wire_format.h"
#include "switch/lanes.h"
#include "switch/pool.h"
#include "switch/quantise.h"
#include "switch/switchml.h"
#include "switch/worker.h"

namespace ghostrank {
namespace {

using switchml::Pool, switchml::Verdict, switchml::Worker;

// Content of a packet's Note::words: the number of the packet in its job, which the switch echoes,
// and the two exponents. Note::index is the pool index, Note::call the low 8 bits of the call's
// number.
constexpr std::size_t kWords = 6;
constexpr std::uint64_t kOverhead = 4;  // bytes of SwitchML's 10-byte header outside `words`
constexpr std::uint16_t kSetBit = 1u << 15;
constexpr int kTicks = 4;                 // timer ticks per time-out
constexpr std::uint32_t kPatience = 100;  // after so many time-outs in a job, double the time-out
constexpr int kSlowest = 1 << 20;         // ... but at most by this factor

using Words = std::array<std::byte, kWords>;

Words words_of(std::uint64_t packet, int exponent) {
  Words words{};
  switchml::store32(words.data(), static_cast<std::uint32_t>(packet));
  words[4] = static_cast<std::byte>(exponent);
  return words;
}

std::int8_t exponent_in(const Note& note) {
  return note.words.size() == kWords ? std::to_integer<std::int8_t>(note.words[4]) : std::int8_t{0};
}

// switch/switchml.h describes bytes 0 to 9 of the UDP payload.
class Packets final : public WireFormat {
 public:
  std::string_view name() const override { return "SwitchML over UDP"; }

  void encode(const Note& note, std::span<std::byte> packet) const override {
    packet[0] = static_cast<std::byte>(1 << 4 | size_code(note.elements));
    packet[1] = static_cast<std::byte>(note.call);
    std::copy_n(note.words.data(), 4, packet.data() + 2);
    switchml::store16(packet.data() + 6, static_cast<std::uint16_t>(note.index));
    std::copy_n(note.words.data() + 4, 2, packet.data() + 8);
    if (note.content.empty()) return;
    std::vector<std::int32_t> values(note.elements);
    std::memcpy(values.data(), note.content.data(), note.content.size());
    switchml::store_lanes(packet.data() + kHead, values.data(), static_cast<int>(note.elements));
  }

  std::optional<Note> decode(std::span<const std::byte> packet,
                             std::vector<std::byte>& store) const override {
    if (packet.size() < kHead || switchml::load8(packet.data()) >> 4 != 1) return std::nullopt;
    const std::size_t bytes = packet.size() - kHead;
    const std::uint64_t elements = bytes / 4;
    if (bytes % 4 != 0 || elements > 256 || !switchml::valid_elements(static_cast<int>(elements)) ||
        (switchml::load8(packet.data()) & 7) != size_code(elements))
      return std::nullopt;
    std::vector<std::int32_t> values(elements);
    switchml::load_lanes(values.data(), packet.data() + kHead, static_cast<int>(elements));
    store.resize(bytes + kWords);
    std::memcpy(store.data(), values.data(), bytes);
    std::copy_n(packet.data() + 2, 4, store.data() + bytes);
    std::copy_n(packet.data() + 8, 2, store.data() + bytes + 4);
    const std::span<const std::byte> all = store;
    return Note{.call = switchml::load8(packet.data() + 1),
                .index = switchml::load16(packet.data() + 6),
                .type = DataType::int32,
                .elements = elements,
                .content = all.first(bytes),
                .words = all.subspan(bytes)};
  }

 private:
  static constexpr std::size_t kHead = 10;
  static unsigned size_code(std::uint64_t elements) {
    return elements == 256 ? 3 : elements == 64 ? 1 : 0;
  }
};

bool is_float(DataType type) { return type == DataType::float32 || type == DataType::bfloat16; }

std::vector<float> floats_of(DataType type, std::span<const std::byte> content) {
  std::vector<float> floats(content.size() / bytes_of(type));
  if (type == DataType::float32) {
    std::memcpy(floats.data(), content.data(), content.size());
  } else {
    for (std::size_t i = 0; i < floats.size(); ++i) {
      Bf16 half;
      std::memcpy(&half, content.data() + 2 * i, sizeof half);
      floats[i] = half.value();
    }
  }
  return floats;
}

std::vector<std::byte> bytes_of(DataType type, std::span<const float> floats) {
  std::vector<std::byte> content(floats.size() * bytes_of(type));
  if (type == DataType::float32) {
    std::memcpy(content.data(), floats.data(), content.size());
  } else {
    for (std::size_t i = 0; i < floats.size(); ++i) {
      const Bf16 half = Bf16::from(floats[i]);
      std::memcpy(content.data() + 2 * i, &half, sizeof half);
    }
  }
  return content;
}

class Member final : public Agent {
 public:
  Member(int ranks, const SwitchMlOptions& options)
      : ranks_(ranks),
        options_(options),
        worker_(options.slots),
        ticks_(static_cast<std::size_t>(options.slots)) {}

  void on_call(Io& io, const Call& call) override {
    calls_.push_back(call);
    if (calls_.size() == 1) start(io);
  }

  void on_note(Io& io, GroupParty, const Note& sum) override {
    if (calls_.empty() || sum.call != job() || sum.elements != per_packet())
      return;  // the job has ended here, or the packet is malformed
    const auto chunk = worker_.result(static_cast<std::uint16_t>(sum.index & ~unsigned{kSetBit}),
                                      (sum.index & kSetBit) != 0);
    if (!chunk) return;
    if (chunk->exponent != Worker::kNone) exponents_[chunk->exponent] = exponent_in(sum);
    if (chunk->values != Worker::kNone) take(io, static_cast<std::uint64_t>(chunk->values), sum);
    if (!worker_.ended()) return send_all(io);
    io.done(call().number);
    calls_.pop_front();
    start(io);
  }

  // Resends the packet of a slot after kTicks * slower_ ticks without a result.
  void on_timer(Io& io, std::uint32_t) override {
    for (std::uint16_t slot = 0; slot < options_.slots; ++slot) {
      const auto chunk = worker_.in_flight(slot);
      if (!chunk || ++ticks_[slot] < kTicks * slower_) continue;
      send(io, *chunk);
      if (++time_outs_ % kPatience == 0 && slower_ < kSlowest) slower_ *= 2;
    }
    io.arm(0, options_.timeout / kTicks);
  }

  void on_room(Io& io) override {
    for (const std::uint16_t slot : std::exchange(refused_, {}))
      if (const auto chunk = worker_.in_flight(slot)) send(io, *chunk);
  }

 private:
  const Call& call() const { return calls_.front(); }
  std::uint32_t job() const { return call().number & 0xff; }
  std::uint64_t per_packet() const { return static_cast<std::uint64_t>(options_.elements); }

  // Starts the next call. A call that needs no packet ends at once.
  void start(Io& io) {
    for (; !calls_.empty(); calls_.pop_front()) {
      const std::uint64_t chunks = (call().collective.count + per_packet() - 1) / per_packet();
      worker_.start(chunks, is_float(call().type));
      exponents_.assign(is_float(call().type) ? chunks : 0, 0);
      time_outs_ = 0;
      slower_ = 1;
      refused_.clear();
      if (!worker_.ended()) {
        real_ = !io.tensor(call().number).read(0, 1).empty();
        break;
      }
      io.done(call().number);
    }
    if (calls_.empty()) return io.disarm(0);
    io.arm(0, options_.timeout / kTicks);
    send_all(io);
  }

  void send_all(Io& io) {
    while (const auto chunk = worker_.next()) send(io, *chunk);
  }

  // The rank's elements of a chunk; empty if there is no real data.
  std::span<const std::byte> mine(Io& io, std::int64_t chunk) {
    const std::uint64_t first = static_cast<std::uint64_t>(chunk) * per_packet();
    return io.tensor(call().number)
        .read(first, std::min(per_packet(), call().collective.count - first));
  }

  void send(Io& io, const Worker::Chunk& chunk) {
    int exponent = 0;
    if (chunk.exponent != Worker::kNone)
      if (const auto block = mine(io, chunk.exponent); !block.empty())
        exponent = switchml::exponent_of(floats_of(call().type, block));
    std::vector<std::int32_t> values;
    if (real_) values.resize(per_packet());
    if (chunk.values != Worker::kNone) fill(values, io, chunk.values);
    const Words words = words_of(chunk.packet, exponent);
    const Note note{.call = job(),
                    .index = chunk.slot | (chunk.set ? unsigned{kSetBit} : 0u),
                    .type = DataType::int32,
                    .elements = per_packet(),
                    .content = std::as_bytes(std::span(values)),
                    .words = words};
    if (!io.send(ranks_, note, Carriage::packet)) refused_.push_back(chunk.slot);
    ticks_[chunk.slot] = 0;
  }

  void fill(std::vector<std::int32_t>& values, Io& io, std::int64_t chunk) {
    const auto block = mine(io, chunk);
    if (block.empty()) return;
    if (!is_float(call().type)) {
      std::memcpy(values.data(), block.data(), block.size());
      return;
    }
    switchml::quantise(floats_of(call().type, block), exponents_[chunk], ranks_, values.data());
  }

  void take(Io& io, std::uint64_t chunk, const Note& sum) {
    if (sum.content.empty()) return;
    const std::uint64_t first = chunk * per_packet();
    const std::uint64_t elements = std::min(per_packet(), call().collective.count - first);
    Tensor& tensor = io.tensor(call().number);
    if (!is_float(call().type)) return tensor.write(first, sum.content.first(4 * elements));
    std::vector<std::int32_t> sums(elements);
    std::memcpy(sums.data(), sum.content.data(), 4 * elements);
    std::vector<float> floats(elements);
    switchml::restore(sums, exponents_[chunk], ranks_, floats.data());
    tensor.write(first, bytes_of(call().type, floats));
  }

  const int ranks_;
  const SwitchMlOptions options_;
  std::deque<Call> calls_;  // open calls; the first is the worker's job
  Worker worker_;
  std::vector<std::int8_t> exponents_;  // maximum over all workers, by chunk
  std::vector<int> ticks_;              // since the slot's last packet was sent
  std::vector<std::uint16_t> refused_;  // slots whose packet was refused for lack of room
  std::uint32_t time_outs_ = 0;         // in the current job
  int slower_ = 1;
  bool real_ = false;  // true if the ranks of the call hold real data
};

class Switch final : public Agent {
 public:
  Switch(int ranks, const SwitchMlOptions& options)
      : options_(options), all_(static_cast<std::size_t>(ranks)) {
    std::iota(all_.begin(), all_.end(), 0);
  }

  void on_note(Io& io, GroupParty from, const Note& note) override {
    // Without real data the pool need not store values: 32 elements are the least it takes.
    if (!pool_)
      pool_.emplace(static_cast<int>(all_.size()), options_.slots,
                    note.content.empty() ? 32 : options_.elements);
    const int slot = static_cast<int>(note.index & ~unsigned{kSetBit});
    if (slot >= pool_->slots() || from >= static_cast<GroupParty>(all_.size()) ||
        note.elements != static_cast<std::uint64_t>(options_.elements))
      return;  // not from a worker of this job
    lanes_.resize(4 * static_cast<std::size_t>(pool_->elements()));
    if (!note.content.empty()) {
      std::vector<std::int32_t> values(note.elements);
      std::memcpy(values.data(), note.content.data(), note.content.size());
      switchml::store_lanes(lanes_.data(), values.data(), pool_->elements());
    }
    const switchml::Packet packet{.slot = static_cast<std::uint16_t>(slot),
                                  .set = (note.index & kSetBit) != 0,
                                  .e0 = exponent_in(note),
                                  .elements = pool_->elements(),
                                  .values = lanes_.data()};
    const Verdict verdict = pool_->receive(from, slot, packet);
    const bool one = verdict == Verdict::retransmit;
    if (!one && verdict != Verdict::broadcast) return;
    Note sum = note;
    Words words{};
    std::copy_n(note.words.begin(), std::min(words.size(), note.words.size()), words.begin());
    words[4] = static_cast<std::byte>(pool_->e0(slot, packet.set));
    sum.words = words;
    if (!note.content.empty())
      sum.content = std::as_bytes(std::span(pool_->values(slot, packet.set), note.elements));
    // If this send finds no room, the workers resend and so ask again.
    io.send(one ? std::span<const GroupParty>(&from, 1) : std::span<const GroupParty>(all_), sum,
            Carriage::packet);
  }

 private:
  const SwitchMlOptions options_;
  std::vector<GroupParty> all_;
  std::optional<Pool> pool_;
  std::vector<std::byte> lanes_;  // one packet's elements, big-endian
};

class SwitchMl final : public Ends {
 public:
  SwitchMl(int ranks, const SwitchMlOptions& options) : Ends(ranks), options_(options) {}

  std::vector<Helper> helpers() const override { return {{PartyKind::network_switch}}; }
  std::unique_ptr<Agent> agent(GroupParty party) const override {
    if (party == size()) return std::make_unique<Switch>(size(), options_);
    return std::make_unique<Member>(size(), options_);
  }
  std::vector<Edge> traffic(const Call& call) const override {
    const auto elements = static_cast<std::uint64_t>(options_.elements);
    const std::uint64_t chunks = (call.collective.count + elements - 1) / elements;
    const std::uint64_t packets = Worker::packets_of(chunks, is_float(call.type), options_.slots);
    const std::uint64_t bytes = packets * (kOverhead + kWords + 4 * elements);
    std::vector<Edge> edges;
    for (GroupRank r = 0; r < size(); ++r)
      for (const auto& [from, to] : {std::pair(r, size()), std::pair(size(), r)})
        edges.push_back({from, to, bytes, packets, Carriage::packet});
    return edges;
  }
  std::uint64_t overhead_bytes() const override { return kOverhead; }
  const WireFormat* wire_format() const override { return &packets_; }
  std::string_view p4_program() const override { return "switch/p4/pna_dpdk.p4"; }
  Survives survives() const override { return {true, true, true, false}; }
  std::string refuses(const Call& call) const override {
    if (call.type == DataType::int32 || is_float(call.type)) return "";
    return "a SwitchML switch adds int32, and float32 and bfloat16 as int32 with a shared exponent";
  }
  double error_bound(const Call& call, double largest) const override {
    if (!is_float(call.type)) return 0;
    const int exponent = std::clamp(std::ilogb(std::max(largest, 0x1p-100)) + 1,
                                    switchml::kLeastExponent, switchml::kMostExponent);
    return switchml::error_bound(exponent, size());
  }

 private:
  SwitchMlOptions options_;
  Packets packets_;
};

}  // namespace

std::unique_ptr<Ends> switchml_ends(int ranks, const SwitchMlOptions& options) {
  if (ranks > switchml::kMaxWorkers)
    throw std::invalid_argument("a SwitchML switch has at most " +
                                std::to_string(switchml::kMaxWorkers) + " workers");
  if (!switchml::valid_elements(options.elements))
    throw std::invalid_argument("packets of SwitchML have 32, 64 or 256 elements");
  if (options.slots < 1 || options.slots > switchml::kMaxSlots)
    throw std::invalid_argument("a SwitchML switch has 1 to " +
                                std::to_string(switchml::kMaxSlots) + " slots");
  return std::make_unique<SwitchMl>(ranks, options);
}

}  // namespace ghostrank
