// OmniReduce's Algorithm 1: messages are never lost and keep their order; see omnireduce.h.
#include <algorithm>
#include <cstring>
#include <deque>
#include <numeric>
#include <utility>
#include <vector>

#include "collectives/schemes/omnireduce/agents.h"

namespace ghostrank::omnireduce {
namespace {

// The blocks of a message, and with each of them the number of a next one.
struct Message {
  std::uint32_t call = 0;
  DataType type{};
  std::vector<std::uint32_t> next;
  std::vector<std::byte> content;

  void start(std::uint32_t of_call, DataType of_type) {
    call = of_call;
    type = of_type;
    next.clear();
    content.clear();
  }
  Note note(const Setup& setup, std::uint32_t index) const {
    return {.call = call,
            .index = index,
            .type = type,
            .elements = next.size() * setup.options.block,
            .content = content,
            .words = std::as_bytes(std::span(next))};
  }
};

std::uint32_t next_in(const Note& note, std::size_t i) {
  std::uint32_t next;
  std::memcpy(&next, note.words.data() + 4 * i, sizeof next);
  return next;
}

// The i-th block of a note; empty without content.
Note block_in(const Note& note, std::size_t i, int block) {
  Note part{.type = note.type, .elements = static_cast<std::uint64_t>(block)};
  const std::size_t bytes = part.elements * bytes_of(note.type);
  if (!note.content.empty()) part.content = note.content.subspan(i * bytes, bytes);
  return part;
}

// Whether a note can be a Message.
bool is_message(const Note& note, const Setup& setup) {
  return note.words.size() % 4 == 0 &&
         note.words.size() / 4 <= static_cast<std::size_t>(setup.options.columns) &&
         note.elements == note.words.size() / 4 * setup.options.block;
}

class ReliableMember final : public Agent {
 public:
  explicit ReliableMember(const Setup& setup) : setup_(setup), walk_(setup.shape()) {}

  void on_call(Io& io, const Call& call) override {
    calls_.push_back(call);
    if (calls_.size() == 1) start(io);
  }

  void on_note(Io& io, GroupParty from, const Note& sums) override {
    if (calls_.empty() || sums.call != call().number || !is_message(sums, setup_)) return;
    const int slot = setup_.slot_of(from, sums.index);
    Tensor& tensor = io.tensor(call().number);
    bool owes = false;
    for (std::size_t i = 0; i < sums.words.size() / 4; ++i) {
      const std::uint32_t next = next_in(sums, i);
      const int column = walk_.shape().column_of(next);
      if (!walk_.may_go_to(slot, column, next)) return;  // no note of ours
      const Note sum = block_in(sums, i, setup_.options.block);
      walk_.store_current(slot, column, tensor, bytes_of(call().type), sum.content);
      const bool mine = walk_.go_to(slot, column, next, tensor);
      owed_[at(slot, column)] = mine;
      owes |= mine;
      open_columns_ -= walk_.ended(slot, column);
    }
    if (owes) send(io, slot);
    if (open_columns_ > 0) return;
    io.done(call().number);
    calls_.pop_front();
    start(io);
  }

  void on_room(Io& io) override {
    for (const int slot : std::exchange(refused_, {})) send(io, slot);
  }

 private:
  const Call& call() const { return calls_.front(); }
  std::size_t at(int slot, int column) const {
    return static_cast<std::size_t>(slot) * setup_.options.columns + column;
  }

  // Starts the next call: the first block of every column leaves, even if it is zero. A call
  // without elements ends at once.
  void start(Io& io) {
    for (; !calls_.empty(); calls_.pop_front()) {
      if (call().collective.count > 0) break;
      io.done(call().number);
    }
    if (calls_.empty()) return;
    walk_.start(call().collective.count, io.tensor(call().number));
    open_columns_ = std::min<std::uint64_t>(walk_.shape().stride(), walk_.blocks());
    owed_.assign(open_columns_, true);
    for (int slot = 0; slot < walk_.shape().slots && walk_.columns_in(slot) > 0; ++slot)
      send(io, slot);
  }

  // Sends the slot's blocks that the rank owes; if there is no room, on_room() does.
  void send(Io& io, int slot) {
    message_.start(call().number, call().type);
    Tensor& tensor = io.tensor(call().number);
    for (int column = 0; column < walk_.columns_in(slot); ++column) {
      if (!owed_[at(slot, column)]) continue;
      message_.next.push_back(walk_.at(slot, column).next);
      walk_.append_current(slot, column, tensor, bytes_of(call().type), message_.content);
    }
    const SlotOwner owner = setup_.owner_of(slot);
    if (!io.send(owner.aggregator, message_.note(setup_, owner.index), Carriage::reliable))
      refused_.push_back(slot);
  }

  const Setup setup_;
  ColumnWalk walk_;
  std::deque<Call> calls_;  // open calls; the first is under way
  // By column: whether the rank has to send, or sent, the block that is being summed.
  std::vector<bool> owed_;
  std::uint64_t open_columns_ = 0;
  std::vector<int> refused_;  // slots whose message was refused for lack of room
  Message message_;
};

class ReliableAggregator final : public Agent {
 public:
  explicit ReliableAggregator(const Setup& setup)
      : setup_(setup), shape_(setup.shape()), cost_(setup), slots_(setup.options.slots) {}

  void on_note(Io& io, GroupParty from, const Note& note) override {
    if (from >= setup_.ranks || note.index >= slots_.size() || !is_message(note, setup_)) return;
    Slot& slot = slots_[note.index];
    if (slot.open == 0) begin(slot, note);
    cost_.begin(io, note.index, note.type);
    for (std::size_t i = 0; i < note.words.size() / 4; ++i) {
      const std::uint32_t next = next_in(note, i);
      const std::size_t number = shape_.column_of(next);
      if (number >= slot.columns.size()) return;  // no note of ours
      Column& column = slot.columns[number];
      cost_.block(io, note.type, !std::exchange(column.begun, true));
      column.sum.add(block_in(note, i, setup_.options.block));
      column.next[from] = next;
      slot.complete += --column.missing == 0;
    }
    go_on(io, note.index);
  }

  void on_room(Io& io) override {
    for (const std::uint32_t index : std::exchange(refused_, {})) {
      slots_[index].refused = false;
      go_on(io, index);
    }
  }

 private:
  struct Column {
    std::vector<std::uint32_t> next;  // by rank: its next nonzero block
    int missing = 0;                  // ranks whose part of the current block is still to come
    bool ended = false;
    bool begun = false;  // the sum of the current block has a part
    Sum sum;
  };
  struct Slot {
    std::uint32_t call = 0;
    DataType type{};
    std::vector<Column> columns;
    int open = 0;      // columns that have not ended
    int complete = 0;  // of these, columns whose current block is complete
    // The other set: sums on their way, and the ranks that were sent them so far.
    Message told;
    int sent = 0;
    bool refused = false;  // waits for room
  };

  // All ranks' first messages of a call have the same columns.
  void begin(Slot& slot, const Note& note) {
    slot.call = note.call;
    slot.type = note.type;
    slot.open = static_cast<int>(note.words.size() / 4);
    slot.complete = 0;
    slot.columns.resize(slot.open);
    for (Column& column : slot.columns) {
      column.next.assign(setup_.ranks, 0);
      column.missing = setup_.ranks;
      column.ended = false;
    }
  }

  // Sends the sums that are on their way, then the next ones if they are complete: they wait for
  // the set.
  void go_on(Io& io, std::uint32_t index) {
    Slot& slot = slots_[index];
    if (slot.refused || !tell(io, index)) return;
    if (slot.open == 0 || slot.complete < slot.open) return;
    finish_round(slot);
    tell(io, index);
  }

  void finish_round(Slot& slot) {
    slot.told.start(slot.call, slot.type);
    slot.sent = 0;
    slot.complete = 0;
    for (Column& column : slot.columns) {
      if (column.ended) continue;
      const std::uint32_t least = *std::min_element(column.next.begin(), column.next.end());
      slot.told.next.push_back(least);
      const auto sum = column.sum.content();
      slot.told.content.insert(slot.told.content.end(), sum.begin(), sum.end());
      column.sum.clear();
      column.begun = false;
      column.ended = shape_.is_end(least);
      slot.open -= column.ended;
      column.missing = static_cast<int>(std::count(column.next.begin(), column.next.end(), least));
    }
  }

  // Returns false, and goes on in on_room(), if not all ranks could be sent the sums. Slots begin
  // with different ranks, so that not all slots send to one rank at a time.
  bool tell(Io& io, std::uint32_t index) {
    Slot& slot = slots_[index];
    if (slot.told.next.empty()) return true;
    const Note note = slot.told.note(setup_, index);
    for (; slot.sent < setup_.ranks; ++slot.sent) {
      const GroupParty rank = (index + slot.sent) % setup_.ranks;
      if (io.send(rank, note, Carriage::reliable)) continue;
      slot.refused = true;
      refused_.push_back(index);
      return false;
    }
    slot.told.next.clear();
    return true;
  }

  const Setup setup_;
  const BlockShape shape_;
  SumCost cost_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> refused_;  // slots that wait for room
};

}  // namespace

std::unique_ptr<Agent> reliable_member(const Setup& setup) {
  return std::make_unique<ReliableMember>(setup);
}
std::unique_ptr<Agent> reliable_aggregator(const Setup& setup) {
  return std::make_unique<ReliableAggregator>(setup);
}

}  // namespace ghostrank::omnireduce
