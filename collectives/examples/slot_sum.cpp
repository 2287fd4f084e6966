// A complete scheme as a plug-in: a switch sums integers slot by slot, and the packets have a wire
// format of their own, which the switch reads.
//
//   worker 0   chunk 0 > slot 0, set 0            chunk 8 > slot 0, set 1
//   switch              + + ... all > 0 1                 + + ... all > 0 1
//   worker 1   chunk 0 > slot 0, set 0            chunk 8 > slot 0, set 1
//   every rank sends S and receives S; at most 8 of its packets are under way
//
// On virtual and memory the switch is the agent below; on a real network it is a program for DPDK,
// which sums packets of this format alone (slot_sum.spec, with slot_sum.entries):
//
//   switch: {target: dpdk, program: slot_sum.spec, entries: slot_sum.entries, ...}
//
// That serves one communicator, of all nodes. When a worker receives the sum of a chunk, it may use
// the slot again, with the slot's other set. The first set keeps the sum for workers that missed
// it. This is correct only if packets between two parties stay in order, so the scheme does not
// claim to survive reordering.
#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <set>

#include "collectives/agent.h"
#include "collectives/plugin.h"
#include "collectives/wire_format.h"

namespace {
using namespace ghostrank;
constexpr std::uint64_t kHeader = 8, kData = 32;  // kHeader: bytes; kData: elements of a chunk
constexpr std::uint32_t kSlots = 8;
constexpr std::uint16_t kPort = 0x51c0;  // UDP

// | magic 2 | slot * 2 + set 2 | call 4 | kData elements, 4 each |  all big-endian
class Packets final : public WireFormat {
 public:
  std::string_view name() const override { return "slot-sum"; }
  void encode(const Note& note, std::span<std::byte> packet) const override {
    put(0x51c0u << 16 | note.index, packet.data());
    put(note.call, packet.data() + 4);
    for (std::size_t at = 0; at < note.content.size(); at += 4) {
      std::uint32_t element;
      std::memcpy(&element, note.content.data() + at, 4);
      put(element, packet.data() + kHeader + at);
    }
  }
  std::optional<Note> decode(std::span<const std::byte> packet,
                             std::vector<std::byte>& store) const override {
    if (packet.size() < kHeader || packet.size() % 4 != 0) return std::nullopt;
    if (get(packet.data()) >> 16 != 0x51c0 || (get(packet.data()) & 0xffff) >= 2 * kSlots)
      return std::nullopt;
    store.resize(packet.size() - kHeader);
    for (std::size_t at = 0; at < store.size(); at += 4) {
      const std::uint32_t element = get(packet.data() + kHeader + at);
      std::memcpy(store.data() + at, &element, 4);
    }
    return Note{.call = get(packet.data() + 4),
                .index = get(packet.data()) & 0xffff,
                .type = DataType::int32,
                .elements = store.size() / 4,
                .content = store};
  }

 private:
  static void put(std::uint32_t n, std::byte* to) {
    for (int i = 0; i < 4; ++i) to[i] = std::byte(n >> (24 - 8 * i) & 0xff);
  }
  static std::uint32_t get(const std::byte* from) {
    std::uint32_t n = 0;
    for (int i = 0; i < 4; ++i) n = n << 8 | std::to_integer<std::uint32_t>(from[i]);
    return n;
  }
};

class Worker final : public Agent {
 public:
  Worker(GroupParty to, Picoseconds timeout) : switch_(to), timeout_(timeout) {}
  void on_call(Io& io, const Call& call) override {
    const std::uint64_t chunks = (call.collective.count + kData - 1) / kData;
    if (chunks == 0) return io.done(call.number);
    open_.push_back({call, chunks_, chunks});
    chunks_ += chunks;
    go_on(io);
  }
  void on_note(Io& io, GroupParty, const Note& sum) override {
    Slot& slot = slots_[sum.index / 2];
    if (!slot.busy || index_of(slot.chunk) != sum.index) return;  // a sum it has already
    if (sum.elements != kData) return;                            // of another format
    const auto open = call_of(slot.chunk);
    const std::uint64_t first = (slot.chunk - open->first) * kData;
    const std::uint64_t elements = std::min(kData, open->call.collective.count - first);
    io.tensor(open->call.number)
        .write(first, sum.content.first(sum.content.empty() ? 0 : elements * 4));
    slot.busy = false;
    io.disarm(sum.index / 2);
    if (--open->left == 0) {
      io.done(open->call.number);
      open_.erase(open);
    }
    go_on(io);
  }
  void on_timer(Io& io, std::uint32_t slot) override { send(io, slots_[slot].chunk); }

 private:
  struct Open {
    Call call;
    std::uint64_t first, left;  // chunk numbers over all calls, the same on all ranks
  };
  struct Slot {
    bool busy = false;
    std::uint64_t chunk = 0;
  };
  static std::uint32_t index_of(std::uint64_t chunk) {
    return static_cast<std::uint32_t>(chunk % kSlots * 2 + chunk / kSlots % 2);
  }
  std::deque<Open>::iterator call_of(std::uint64_t chunk) {
    auto open = open_.end();
    while ((--open)->first > chunk) continue;
    return open;
  }
  void go_on(Io& io) {
    for (; next_ < chunks_ && !slots_[next_ % kSlots].busy; ++next_) {
      slots_[next_ % kSlots] = {true, next_};
      send(io, next_);
    }
  }
  void send(Io& io, std::uint64_t chunk) {
    const Open& open = *call_of(chunk);
    const std::uint64_t first = (chunk - open.first) * kData;
    Note part{.call = open.call.number, .index = index_of(chunk), .type = open.call.type};
    part.elements = kData;  // a switch takes packets of one size: the last one is filled up
    const auto real =
        io.tensor(part.call).read(first, std::min(kData, open.call.collective.count - first));
    std::array<std::byte, 4 * kData> filled{};
    std::ranges::copy(real, filled.begin());
    if (!real.empty()) part.content = filled;
    io.send(switch_, part, Carriage::packet);  // no room: the timer resends it
    io.arm(part.index / 2, timeout_);
  }

  GroupParty switch_;
  Picoseconds timeout_;
  std::deque<Open> open_;
  std::array<Slot, kSlots> slots_;
  std::uint64_t next_ = 0, chunks_ = 0;  // the next chunk to send; the chunks of all calls so far
};

class Switch final : public Agent {
 public:
  explicit Switch(int size) : size_(size) {
    for (GroupParty p = 0; p < size; ++p) all_.push_back(p);
  }
  void on_note(Io& io, GroupParty from, const Note& part) override {
    Round &round = rounds_[part.index], &other = rounds_[part.index ^ 1];
    other.heard.erase(from);
    if (round.heard.empty()) round = {{}, size_, {}};
    if (round.heard.insert(from).second) {
      round.sum.add(part);
      if (--round.missing > 0) return;
      io.send(all_, sum_of(round, part), Carriage::packet);
    } else if (round.missing == 0) {  // the worker missed the sum, or the sum is still under way
      io.send(from, sum_of(round, part), Carriage::packet);
    }
  }

 private:
  struct Round {
    std::set<GroupParty> heard;
    int missing = 0;
    Sum sum;
  };
  static Note sum_of(const Round& round, Note note) {
    note.content = round.sum.content();
    return note;
  }

  int size_;
  std::vector<GroupParty> all_;
  std::array<Round, 2 * kSlots> rounds_;
};

class SlotSum final : public Ends {
 public:
  SlotSum(int size, const Communicator& comm) : Ends(size), timeout_(comm.in_switch.timeout_ps) {}
  std::vector<Helper> helpers() const override { return {{PartyKind::network_switch}}; }
  std::unique_ptr<Agent> agent(GroupParty party) const override {
    if (party == size()) return std::make_unique<Switch>(size());
    return std::make_unique<Worker>(size(), timeout_);
  }
  std::vector<Edge> traffic(const Call& call) const override {
    const std::uint64_t packets = (call.collective.count + kData - 1) / kData;
    const std::uint64_t all = packets * (kHeader + 4 * kData);
    std::vector<Edge> edges;
    for (GroupRank r = 0; r < size(); ++r)
      for (const auto& [from, to] : {std::pair(r, size()), std::pair(size(), r)})
        edges.push_back({from, to, all, packets, Carriage::packet});
    return edges;
  }
  std::uint64_t overhead_bytes() const override { return kHeader; }
  const WireFormat* wire_format() const override { return &packets_; }
  // A round in set 1 takes back every mark in set 0, which the first chunk of a slot uses.
  std::optional<SwitchService> switch_service() const override {
    SwitchService service{kPort, kSlots, kData, {Func::all_reduce}, {}, {{}}, {}};
    for (GroupRank r = 0; r < size(); ++r) service.rails[0].push_back(r);
    for (std::uint32_t slot = 0; slot < kSlots; ++slot)
      service.greeting.push_back(
          {.index = 2 * slot + 1, .type = DataType::int32, .elements = kData});
    return service;
  }
  Survives survives() const override { return {true, true, true, false}; }
  std::string refuses(const Call& call) const override {
    return call.type == DataType::int32 ? "" : "its switch adds int32 alone";
  }

 private:
  Packets packets_;
  Picoseconds timeout_;  // switch.timeout_us
};

const Algorithm kRows[]{
    {.library = "mine",
     .func = Func::all_reduce,
     .name = "slot-sum",
     .ends = [](int n, auto& comm) { return std::make_unique<SlotSum>(n, comm); }}};

}  // namespace

GHOSTRANK_PLUGIN(kRows)
