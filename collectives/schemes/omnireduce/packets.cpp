// The ranks of OmniReduce's Algorithm 2: packets may be lost, doubled, late or overtaken, and a
// switch may forget or stop; see omnireduce.h.
//
// Where a switch sums, ranks help each other by reliable notes:
//
//   ask    a rank whose packet has waited for long > all others: the rounds that it waits for
//   told   a rank that has the sum of such a round > that rank
//   part   a rank that has long heard nothing from the switch > the slot's deputy: its packet
//   sum    the deputy, a rank, when it has the parts of all > all
//
// In a slot no rank is more than one round ahead of another. So a sum that a rank lacks is either
// the last one of another, which keeps it, or nobody has it: then all send their packets again, to
// a switch that has forgotten them or to the deputy. A round has one sum, whoever adds it up, so
// ranks need not agree on who does. A deputy's sum shows that all ranks have long heard nothing,
// and not that one is late: from then on they leave the switch alone.
#include <bit>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "collectives/schemes/omnireduce/rounds.h"
#include "collectives/schemes/shared/kept_note.h"
#include "collectives/schemes/shared/slot_timers.h"

namespace ghostrank::omnireduce {
namespace {

enum Tag : std::uint8_t { kPacket, kAsk, kTold, kPart, kSum };

constexpr int kAskAfter = 8;  // time-outs; then after twice as many, and so on

// A round that a rank waits for; words of `ask`.
struct Wanted {
  std::uint32_t slot = 0, round = 0;
};
constexpr std::size_t kMostWanted = kMostWords / sizeof(Wanted);  // of a note

class PacketMember final : public Agent {
 public:
  PacketMember(const Setup& setup, GroupRank self)
      : setup_(setup),
        self_(self),
        walk_(setup.shape()),
        slots_(walk_.shape().slots),
        timers_(walk_.shape().slots, setup.options.timeout) {}

  void on_call(Io& io, const Call& call) override {
    calls_.push_back(call);
    if (calls_.size() == 1) start(io);
    add_own_parts(io);
  }

  void on_note(Io& io, GroupParty from, const Note& note) override {
    if (note.tag == kAsk) return answer(io, from, note);
    if (!well_formed(note, setup_)) return;
    if (note.tag == kPart) {
      add_part(io, from, note);
    } else {
      if (note.tag == kPacket) silent_ = 0;
      if (note.tag == kSum) leave_switch(io);
      const GroupParty sums = note.tag == kPacket ? from : setup_.ranks;
      take(io, setup_.slot_of(sums, note.index & ~kSetBit), note);
    }
    add_own_parts(io);
  }

  void on_timer(Io& io, std::uint32_t) override {
    std::vector<Wanted> wanted;
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      if (!slots_[slot].waits) continue;
      if (timers_.expired(slot) && !left_) send_packet(io, static_cast<int>(slot));
      if (has_waited_long(slot))
        wanted.push_back({static_cast<std::uint32_t>(slot), slots_[slot].round});
    }
    if (setup_.options.in_switch) ask(io, wanted);
    ++silent_;
    if (suspects() && silent_ == patience() && !left_) send_parts(io);
    timers_.arm(io);
    add_own_parts(io);
  }

  void on_room(Io& io) override {
    outbox_.flush(io);
    for (const int slot : std::exchange(refused_, {}))
      if (slots_[slot].waits && !left_) send_packet(io, slot);
  }

 private:
  struct State {
    std::uint32_t round = 0;
    bool waits = false;      // for the sum of this round
    bool has_block = false;  // the rank has the block of this round
    // The sum of the round before, for those who lack it: its type, words and elements.
    DataType type{};
    Words words;
    std::vector<std::byte> sum;
  };
  const Call& call() const { return calls_.front(); }
  // Nobody has answered for so long that the slot's parts go to its deputy.
  bool suspects() const {
    return setup_.options.in_switch && setup_.options.fallback > 0 && silent_ >= patience();
  }
  int patience() const { return timers_.ticks_in(setup_.options.fallback); }
  GroupRank deputy_of(int slot) const { return slot % setup_.ranks; }

  // Starts the next call: the first block of every slot leaves, even if it is zero. A call without
  // elements ends at once.
  void start(Io& io) {
    for (; !calls_.empty(); calls_.pop_front()) {
      if (call().collective.count > 0) break;
      io.done(call().number);
    }
    silent_ = 0;
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

  // The sum of a round, from whomever.
  void take(Io& io, int slot, const Note& sum) {
    if (calls_.empty() || sum.elements == 0) return;
    State& state = slots_[slot];
    const Words words = words_in(sum);
    if (!state.waits || words.round != state.round) return;  // it has this sum
    if (!walk_.may_go_to(slot, 0, words.next)) return;       // no packet of ours
    Tensor& tensor = io.tensor(call().number);
    walk_.store_current(slot, 0, tensor, bytes_of(call().type), sum.content);
    state.has_block = walk_.go_to(slot, 0, words.next, tensor);
    ++state.round;
    state.waits = !walk_.ended(slot, 0);
    if (setup_.options.in_switch) {
      state.type = sum.type;
      state.words = words;
      state.sum.assign(sum.content.begin(), sum.content.end());
    }
    if (state.waits) return send(io, slot);
    if (--open_ > 0) return;
    if (left_ && self_ == 0) io.tell(Incident::ring_call);
    io.done(call().number);
    calls_.pop_front();
    start(io);
  }

  // The packet of a slot's round.
  void send(Io& io, int slot) {
    timers_.begin(slot);
    if (!left_) send_packet(io, slot);
    if (left_ || suspects()) send_part(io, slot);
  }
  void send_packet(Io& io, int slot) {
    timers_.sent(slot);
    if (!io.send(setup_.owner_of(slot).aggregator, packet(io, slot, kPacket), Carriage::packet))
      refused_.push_back(slot);
  }
  // Valid until the next packet.
  Note packet(Io& io, int slot, Tag tag) {
    const State& state = slots_[slot];
    words_ = {state.round, walk_.at(slot, 0).next};
    content_.clear();
    if (state.has_block)
      walk_.append_current(slot, 0, io.tensor(call().number), bytes_of(call().type), content_);
    return {.tag = tag,
            .index = index_of(setup_.owner_of(slot).index, state.round),
            .type = call().type,
            .elements = state.has_block ? static_cast<std::uint64_t>(setup_.options.block) : 0,
            .content = content_,
            .words = std::as_bytes(std::span(&words_, 1))};
  }

  // ---- Sums that the switch has forgotten ----

  bool has_waited_long(std::size_t slot) const {
    constexpr int kTicks = kAskAfter * SlotTimers::kTicks;
    const int age = timers_.age(slot);
    return age % kTicks == 0 && std::has_single_bit(static_cast<unsigned>(age / kTicks));
  }

  void ask(Io& io, std::span<const Wanted> wanted) {
    for (std::size_t at = 0; at < wanted.size(); at += kMostWanted) {
      const auto some = wanted.subspan(at, std::min(kMostWanted, wanted.size() - at));
      for (GroupRank rank = 0; rank < setup_.ranks; ++rank)
        if (rank != self_) outbox_.send(io, rank, {.tag = kAsk, .words = std::as_bytes(some)});
    }
  }

  void answer(Io& io, GroupParty from, const Note& ask) {
    for (std::size_t at = 0; at + sizeof(Wanted) <= ask.words.size(); at += sizeof(Wanted)) {
      Wanted wanted;
      std::memcpy(&wanted, ask.words.data() + at, sizeof wanted);
      if (wanted.slot >= slots_.size()) continue;
      const State& state = slots_[wanted.slot];
      if (wanted.round + 1 != state.round) continue;
      const std::uint32_t index = setup_.owner_of(wanted.slot).index;
      outbox_.send(io, from,
                   {.tag = kTold,
                    .index = index_of(index, wanted.round),
                    .type = state.type,
                    .elements = static_cast<std::uint64_t>(setup_.options.block),
                    .content = state.sum,
                    .words = std::as_bytes(std::span(&state.words, 1))});
    }
  }

  // ---- A switch that is gone ----

  void send_parts(Io& io) {
    for (std::size_t slot = 0; slot < slots_.size(); ++slot)
      if (slots_[slot].waits) send_part(io, static_cast<int>(slot));
  }
  void send_part(Io& io, int slot) {
    if (deputy_of(slot) == self_) return own_parts_.push_back(slot);
    outbox_.send(io, deputy_of(slot), packet(io, slot, kPart));
  }

  void leave_switch(Io& io) {
    if (std::exchange(left_, true)) return;
    if (self_ == 0) io.tell(Incident::fallback);
    if (!suspects()) send_parts(io);
  }

  // The rank must be the deputy of the part's slot. It takes its own sum at once.
  void add_part(Io& io, GroupParty from, const Note& part) {
    if (!deputy_) deputy_.emplace(setup_.options.slots, setup_.ranks);
    const std::uint32_t slot = setup_.own_slot(part.index & ~kSetBit);
    Round* round = deputy_->of(slot, words_in(part).round);
    if (!round) return;
    const bool fresh = round->add(from, part);
    if (!round->complete()) return;
    Note sum = round->told(part.index, setup_.options.block);
    sum.tag = kSum;
    for (GroupRank rank = 0; rank < setup_.ranks; ++rank)
      if (rank != self_ && (fresh || rank == from)) outbox_.send(io, rank, sum);
    if (!fresh) return;
    leave_switch(io);
    take(io, slot, sum);
  }

  // One after the other, because a sum that the rank takes makes its next part.
  void add_own_parts(Io& io) {
    for (; !own_parts_.empty(); own_parts_.pop_front())
      if (slots_[own_parts_.front()].waits)
        add_part(io, self_, packet(io, own_parts_.front(), kPart));
  }

  const Setup setup_;
  const GroupRank self_;
  ColumnWalk walk_;
  std::deque<Call> calls_;  // open calls; the first is under way
  std::vector<State> slots_;
  SlotTimers timers_;
  int open_ = 0;              // slots of the call that have not ended
  std::vector<int> refused_;  // slots whose packet was refused for lack of room
  std::vector<std::byte> content_;
  Words words_;
  Outbox outbox_;
  int silent_ = 0;     // ticks since the call last heard from the switch
  bool left_ = false;  // the switch, for good
  std::optional<SlotRounds> deputy_;
  std::deque<int> own_parts_;  // slots
};

}  // namespace

std::unique_ptr<Agent> packet_member(const Setup& setup, GroupRank self) {
  return std::make_unique<PacketMember>(setup, self);
}

}  // namespace ghostrank::omnireduce
