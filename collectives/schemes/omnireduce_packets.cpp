// OmniReduce's Algorithm 2: packets may be lost, doubled, late or overtaken; see omnireduce.h.
#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <numeric>
#include <utility>
#include <vector>

#include "collectives/schemes/omnireduce_agents.h"
#include "collectives/schemes/slot_timers.h"

namespace ghostrank::omnireduce {
namespace {

// Note::words of a packet.
struct Words {
  std::uint32_t round = 0;  // in the slot, over all calls
  std::uint32_t next = 0;   // block, or an end
};
static_assert(sizeof(Words) == kPacketWords);

Words words_in(const Note& note) {
  Words words;
  std::memcpy(&words, note.words.data(), sizeof words);
  return words;
}

std::uint32_t index_of(std::uint32_t slot, std::uint32_t round) {
  return slot | (round % 2 == 1 ? kSetBit : 0U);
}

bool well_formed(const Note& note, const Setup& setup) {
  const std::uint64_t block = setup.options.block;
  return note.words.size() == kPacketWords && (note.elements == 0 || note.elements == block) &&
         setup.own_slot(note.index & ~kSetBit) < static_cast<std::uint32_t>(setup.options.slots);
}

class Member final : public Agent {
 public:
  explicit Member(const Setup& setup)
      : setup_(setup),
        walk_(setup.shape()),
        slots_(walk_.shape().slots),
        timers_(walk_.shape().slots, setup.options.timeout) {}

  void on_call(Io& io, const Call& call) override {
    calls_.push_back(call);
    if (calls_.size() == 1) start(io);
  }

  void on_note(Io& io, GroupParty from, const Note& sum) override {
    if (calls_.empty() || !well_formed(sum, setup_) || sum.elements == 0) return;
    const int slot = setup_.slot_of(from, sum.index & ~kSetBit);
    State& state = slots_[slot];
    const Words words = words_in(sum);
    if (!state.waits || words.round != state.round) return;  // it has this sum
    if (!walk_.may_go_to(slot, 0, words.next)) return;       // no packet of ours
    Tensor& tensor = io.tensor(call().number);
    walk_.store_current(slot, 0, tensor, bytes_of(call().type), sum.content);
    state.has_block = walk_.go_to(slot, 0, words.next, tensor);
    ++state.round;
    state.waits = !walk_.ended(slot, 0);
    if (state.waits) return send(io, slot);
    if (--open_ > 0) return;
    io.done(call().number);
    calls_.pop_front();
    start(io);
  }

  void on_timer(Io& io, std::uint32_t) override {
    for (std::size_t slot = 0; slot < slots_.size(); ++slot)
      if (slots_[slot].waits && timers_.expired(slot)) send(io, static_cast<int>(slot));
    timers_.arm(io);
  }

  void on_room(Io& io) override {
    for (const int slot : std::exchange(refused_, {}))
      if (slots_[slot].waits) send(io, slot);
  }

 private:
  struct State {
    std::uint32_t round = 0;
    bool waits = false;      // for the sum of this round
    bool has_block = false;  // the rank has the block of this round
  };
  const Call& call() const { return calls_.front(); }

  // Starts the next call: the first block of every slot leaves, even if it is zero. A call without
  // elements ends at once.
  void start(Io& io) {
    for (; !calls_.empty(); calls_.pop_front()) {
      if (call().collective.count > 0) break;
      io.done(call().number);
    }
    if (calls_.empty()) return io.disarm(0);
    walk_.start(call().collective.count, io.tensor(call().number));
    open_ = static_cast<int>(
        std::min<std::uint64_t>(static_cast<std::uint64_t>(walk_.shape().slots), walk_.blocks()));
    timers_.start_call();
    refused_.clear();
    timers_.arm(io);
    for (int slot = 0; slot < open_; ++slot) {
      State& state = slots_[slot];
      state.waits = state.has_block = true;
      send(io, slot);
    }
  }

  void send(Io& io, int slot) {
    const State& state = slots_[slot];
    const SlotPlace place = setup_.place_of(slot);
    const Words words{state.round, walk_.at(slot, 0).next};
    content_.clear();
    if (state.has_block)
      walk_.append_current(slot, 0, io.tensor(call().number), bytes_of(call().type), content_);
    const Note note{
        .index = index_of(place.index, state.round),
        .type = call().type,
        .elements = state.has_block ? static_cast<std::uint64_t>(setup_.options.block) : 0,
        .content = content_,
        .words = std::as_bytes(std::span(&words, 1))};
    timers_.sent(slot);
    if (!io.send(place.aggregator, note, Carriage::packet)) refused_.push_back(slot);
  }

  const Setup setup_;
  ColumnWalk walk_;
  std::deque<Call> calls_;  // open calls; the first is under way
  std::vector<State> slots_;
  SlotTimers timers_;
  int open_ = 0;              // slots of the call that have not ended
  std::vector<int> refused_;  // slots whose packet was refused for lack of room
  std::vector<std::byte> content_;
};

// One round of a slot: who was heard, the sum, the least next block.
class Round {
 public:
  bool is(std::uint32_t number) const { return used_ && number_ == number; }
  bool is_older_than(std::uint32_t number) const {
    return !used_ || static_cast<std::int32_t>(number - number_) > 0;  // the numbers wrap around
  }
  void begin(std::uint32_t number, int ranks) {
    used_ = true;
    number_ = number;
    missing_ = ranks;
    least_ = ~0U;
    heard_.assign(ranks, false);
    sum_.clear();
    has_sum_ = false;
  }
  // False: the rank was heard before.
  bool add(GroupParty from, const Note& note, std::uint32_t next) {
    if (heard_[from]) return false;
    heard_[from] = true;
    --missing_;
    least_ = std::min(least_, next);
    type_ = note.type;
    if (note.elements > 0) {
      has_sum_ = true;
      sum_.add(note);
    }
    return true;
  }
  bool has_sum() const { return has_sum_; }
  bool complete() const { return missing_ == 0; }
  std::uint32_t least_next() const { return least_; }
  DataType type() const { return type_; }
  std::span<const std::byte> sum() const { return sum_.content(); }

 private:
  bool used_ = false, has_sum_ = false;
  std::uint32_t number_ = 0, least_ = 0;
  int missing_ = 0;
  DataType type_{};
  std::vector<bool> heard_;
  Sum sum_;
};

// A rank's packet of round r + 2 says that all ranks were heard in round r + 1, and so have the sum
// of r: its set is free.
class Aggregator final : public Agent {
 public:
  explicit Aggregator(const Setup& setup)
      : setup_(setup), cost_(setup), slots_(setup.options.slots), all_(setup.ranks) {
    std::iota(all_.begin(), all_.end(), 0);
  }

  void on_note(Io& io, GroupParty from, const Note& note) override {
    if (from >= setup_.ranks || !well_formed(note, setup_)) return;
    const std::uint32_t slot = setup_.own_slot(note.index & ~kSetBit);
    const Words words = words_in(note);
    Round& round = slots_[slot][words.round % 2];
    if (round.is_older_than(words.round)) round.begin(words.round, setup_.ranks);
    if (!round.is(words.round)) return;  // a late packet of an earlier round
    cost_.begin(io, slot, note.type);
    const bool first = !round.has_sum();
    const bool fresh = round.add(from, note, words.next);
    if (fresh && note.elements > 0) cost_.block(io, note.type, first);
    if (!round.complete()) return;
    const Words told{words.round, round.least_next()};
    const Note sum{.index = note.index,
                   .type = round.type(),
                   .elements = static_cast<std::uint64_t>(setup_.options.block),
                   .content = round.sum(),
                   .words = std::as_bytes(std::span(&told, 1))};
    // Where a send finds no room, the rank asks again.
    if (!fresh)
      io.send(from, sum, Carriage::packet);
    else if (setup_.options.in_switch)
      io.send(all_, sum, Carriage::packet);
    else
      for (int i = 0; i < setup_.ranks; ++i)
        io.send((static_cast<GroupParty>(slot % all_.size()) + i) % setup_.ranks, sum,
                Carriage::packet);
  }

 private:
  const Setup setup_;
  SumCost cost_;
  std::vector<std::array<Round, 2>> slots_;
  std::vector<GroupParty> all_;
};

void store32(std::byte* to, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) to[i] = static_cast<std::byte>(value >> (24 - 8 * i));
}
std::uint32_t load32(const std::byte* from) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | std::to_integer<std::uint32_t>(from[i]);
  return value;
}

// Copies elements, and with `reverse` turns the bytes of each around.
void copy_elements(std::span<const std::byte> from, std::size_t element, bool reverse,
                   std::byte* to) {
  std::copy(from.begin(), from.end(), to);
  for (std::size_t at = 0; reverse && at < from.size(); at += element)
    std::reverse(to + at, to + at + element);
}

//   0 round : 32   4 set : 1, slot : 15   6 next : 32   10 type : 8   11 elements
// Numbers are big-endian, elements little-endian, but for a switch. The types 1 and 2 are the
// source's.
class Packets final : public WireFormat {
 public:
  explicit Packets(bool for_switch) : for_switch_(for_switch) {}
  std::string_view name() const override {
    return for_switch_ ? "OmniReduce over UDP, for a switch" : "OmniReduce over UDP";
  }

  void encode(const Note& note, std::span<std::byte> packet) const override {
    const Words words = words_in(note);
    store32(packet.data(), words.round);
    packet[4] = static_cast<std::byte>(note.index >> 8);
    packet[5] = static_cast<std::byte>(note.index);
    store32(packet.data() + 6, words.next);
    packet[10] = static_cast<std::byte>(static_cast<int>(note.type) + 1);
    copy_elements(note.content, bytes_of(note.type), for_switch_, packet.data() + kHead);
  }

  std::optional<Note> decode(std::span<const std::byte> packet,
                             std::vector<std::byte>& store) const override {
    if (packet.size() < kHead) return std::nullopt;
    const int type = std::to_integer<int>(packet[10]) - 1;
    if (type < 0 || type >= kDataTypes) return std::nullopt;
    const std::size_t bytes = packet.size() - kHead;
    const std::uint32_t element = bytes_of(static_cast<DataType>(type));
    if (bytes % element != 0) return std::nullopt;
    const Words words{load32(packet.data()), load32(packet.data() + 6)};
    // The content first, because elements must be aligned.
    store.resize(bytes + kPacketWords);
    copy_elements(packet.subspan(kHead), element, for_switch_, store.data());
    std::memcpy(store.data() + bytes, &words, sizeof words);
    const std::span<const std::byte> all = store;
    return Note{.index = std::to_integer<std::uint32_t>(packet[4]) << 8 |
                         std::to_integer<std::uint32_t>(packet[5]),
                .type = static_cast<DataType>(type),
                .elements = bytes / element,
                .content = all.first(bytes),
                .words = all.subspan(bytes)};
  }

 private:
  static constexpr std::size_t kHead = kPacketOverhead + kPacketWords;
  bool for_switch_;
};

}  // namespace

std::unique_ptr<Agent> packet_member(const Setup& setup) { return std::make_unique<Member>(setup); }
std::unique_ptr<Agent> packet_aggregator(const Setup& setup) {
  return std::make_unique<Aggregator>(setup);
}

const WireFormat& packet_format(bool for_switch) {
  static const Packets kOfHosts(false), kOfSwitch(true);
  return for_switch ? kOfSwitch : kOfHosts;
}

}  // namespace ghostrank::omnireduce
