// Schemes for the engine's tests: sums at servers.
//
//   at-server   one server adds up; reliable notes; each rank's whole contribution in one
//   in-packets  two servers share the blocks; packets, which ranks retransmit after 200 us
//   with-words  like in-packets with one server and a timeout of 250 ms; notes carry words, too
//   announced   like at-server; an empty note of the same size precedes each contribution
//   deaf        like in-packets, but the servers ignore block 77 of a call: it is sent for ever
//   greedy      like at-server with a note per element: sends until there is no room, then goes on
//   many-slots  a switch of 1,000 slots (collectives/slot_scheme.h)
#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "collectives/agent.h"
#include "collectives/plugin.h"
#include "collectives/slot_scheme.h"

namespace {

using namespace ghostrank;

constexpr Picoseconds kAgain = 200'000'000;          // 200 us
constexpr Picoseconds kPatiently = 250'000'000'000;  // 250 ms
constexpr Picoseconds kPerByte = 50;                 // 20 GB/s
constexpr std::uint32_t kUnheardBlock = 77;          // of larger calls than a scheme is proved with
constexpr std::uint32_t kCalls = 16;                 // no rank is so many calls behind
enum Tag : std::uint8_t { part = 1, sum, ahead };

struct Options {
  std::uint64_t block = ~std::uint64_t{0};  // elements of a note
  int servers = 1;
  Carriage carriage = Carriage::reliable;
  bool with_words = false;
  bool announces = false;
  std::uint32_t unheard = ~0u;  // block
};

// Eight bytes that identify the note.
std::array<std::uint32_t, 2> words_of(const Note& note) { return {~note.call, note.index * 7}; }

// True when the note's words, if it must have any, match its other fields.
bool says_as_much(const Options& o, const Note& note) {
  const auto words = words_of(note);
  return o.with_words ? note.words.size() == sizeof words &&
                            std::memcmp(note.words.data(), words.data(), sizeof words) == 0
                      : note.words.empty();
}

std::uint64_t blocks_of(const Options& o, std::uint64_t count) {
  return count == 0 ? 1 : (count - 1) / o.block + 1;
}

class Worker final : public Agent {
 public:
  Worker(const Options& o, int size) : o_(o), size_(size) {}
  void on_call(Io& io, const Call& call) override {
    const std::uint64_t blocks = blocks_of(o_, call.collective.count);
    open_[call.number] = {call, std::vector<bool>(blocks, true), blocks, 0};
    on_room(io);
    if (o_.carriage == Carriage::packet) io.arm(0, again());
  }
  void on_room(Io& io) override {
    for (auto& [number, o] : open_)
      while (o.next < o.left.size() && send(io, o, o.next)) ++o.next;
  }
  void on_timer(Io& io, std::uint32_t) override {
    for (auto& [number, o] : open_)
      for (std::size_t b = 0; b < o.next; ++b)
        if (o.left[b]) send(io, o, b);
    io.arm(0, again());
  }
  void on_note(Io& io, GroupParty, const Note& note) override {
    if (!says_as_much(o_, note)) return;
    const auto found = open_.find(note.call);
    if (found == open_.end() || !found->second.left[note.index]) return;
    Open& o = found->second;
    o.left[note.index] = false;
    io.tensor(note.call).write(note.index * o_.block, note.content);
    if (--o.missing > 0) return;
    io.done(note.call);
    open_.erase(found);
    if (open_.empty()) io.disarm(0);
  }

 private:
  Picoseconds again() const { return o_.with_words ? kPatiently : kAgain; }

  struct Open {
    Call call;
    std::vector<bool> left;
    std::uint64_t missing = 0, next = 0;
    std::uint64_t announced = 0;  // blocks
  };

  bool send(Io& io, Open& o, std::size_t b) {
    const std::uint64_t first = b * o_.block;
    Note note{.tag = part, .call = o.call.number, .index = static_cast<std::uint32_t>(b)};
    note.type = o.call.type;
    note.elements = std::min(o_.block, o.call.collective.count - first);
    note.content = io.tensor(o.call.number).read(first, note.elements);
    const auto words = words_of(note);
    if (o_.with_words) note.words = std::as_bytes(std::span(words));
    if (o_.announces && o.announced == b) {
      Note announcement = note;
      announcement.tag = ahead;
      announcement.content = {};
      if (!io.send(size_, announcement, o_.carriage)) return false;
      ++o.announced;
    }
    return io.send(size_ + static_cast<GroupParty>(b) % o_.servers, note, o_.carriage);
  }

  const Options o_;
  const int size_;
  std::map<std::uint32_t, Open> open_;
};

class Server final : public Agent {
 public:
  Server(const Options& o, int size) : o_(o), size_(size) {}
  void on_note(Io& io, GroupParty from, const Note& note) override {
    if (!says_as_much(o_, note) || note.index == o_.unheard) return;
    if (note.tag == ahead) {
      deceived_ |= !note.content.empty();
      return;
    }
    if (deceived_) return;  // the call never ends
    Slot& slot = slots_[{note.call, note.index}];
    slots_.erase({note.call - kCalls, note.index});
    if (slot.heard.empty()) slot.heard.resize(size_);
    const auto f = static_cast<std::size_t>(from);
    if (slot.heard[f] && slot.count < size_) return;
    Note out = note;
    out.tag = sum;
    if (slot.heard[f]) return tell(io, {from}, out, slot);  // it has missed the sum: send it again
    slot.heard[f] = true;
    slot.sum.add(note);
    io.spend(kPerByte * static_cast<Picoseconds>(note.elements * bytes_of(note.type)));
    if (++slot.count < size_) return;
    std::vector<GroupParty> all;
    for (GroupParty p = 0; p < size_; ++p) all.push_back(p);
    tell(io, all, out, slot);
  }
  void on_room(Io& io) override {
    for (; !untold_.empty(); untold_.pop_front()) {
      auto& [to, note, content, words] = untold_.front();
      note.content = content;
      note.words = words;
      if (!io.send(to, note, o_.carriage)) return;
    }
  }

 private:
  struct Slot {
    Sum sum;
    std::vector<bool> heard;
    int count = 0;
  };
  struct Untold {
    std::vector<GroupParty> to;
    Note note;
    std::vector<std::byte> content, words;  // what the note refers to
  };

  void tell(Io& io, std::vector<GroupParty> to, const Note& note, const Slot& slot) {
    const auto content = slot.sum.content();
    untold_.push_back({std::move(to),
                       note,
                       {content.begin(), content.end()},
                       {note.words.begin(), note.words.end()}});
    if (untold_.size() == 1) on_room(io);
  }

  const Options o_;
  const int size_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Slot> slots_;
  std::deque<Untold> untold_;  // there was no room for them
  bool deceived_ = false;      // an announcement had content
};

class SumAtServers final : public Ends {
 public:
  SumAtServers(int size, const Options& o) : Ends(size), o_(o) {}
  std::vector<Helper> helpers() const override { return std::vector<Helper>(o_.servers); }
  std::unique_ptr<Agent> agent(GroupParty party) const override {
    if (party < size()) return std::make_unique<Worker>(o_, size());
    return std::make_unique<Server>(o_, size());
  }
  std::vector<Edge> traffic(const Call& call) const override {
    std::vector<Edge> edges;
    for (GroupParty server = 0; server < o_.servers; ++server) {
      std::uint64_t messages = 0, bytes = 0;
      for (std::uint64_t b = static_cast<std::uint64_t>(server);
           b < blocks_of(o_, call.collective.count); b += static_cast<std::uint64_t>(o_.servers)) {
        ++messages;
        bytes += overhead_bytes() + (o_.with_words ? 8 : 0) +
                 std::min(o_.block, call.collective.count - b * o_.block) *
                     call.collective.element_bytes;
      }
      if (messages == 0) continue;
      for (GroupParty rank = 0; rank < size(); ++rank) {
        const std::uint64_t copies = o_.announces ? 2 : 1;
        edges.push_back({rank, size() + server, copies * bytes, copies * messages, o_.carriage});
        edges.push_back({size() + server, rank, bytes, messages, o_.carriage});
      }
    }
    return edges;
  }
  std::uint64_t overhead_bytes() const override { return 16; }
  Survives survives() const override {
    const bool packets = o_.carriage == Carriage::packet;
    return {packets, packets, packets, packets};
  }
  std::string refuses(const Call& call) const override {
    return call.type == DataType::uint8 ? "bytes cannot be added up" : "";
  }

 private:
  const Options o_;
};

Algorithm row(std::string_view name, const Options& o) {
  return {.library = "test",
          .func = Func::all_reduce,
          .name = name,
          .ends = [o](int size, const Communicator&) -> std::unique_ptr<Ends> {
            return std::make_unique<SumAtServers>(size, o);
          }};
}

constexpr SlotForm kManySlots{.name = "many-slots", .port = 0x51c1, .slots = 1000};

const Algorithm kRows[]{
    row("at-server", {}),
    row("in-packets", {.block = 256, .servers = 2, .carriage = Carriage::packet}),
    row("with-words", {.block = 256, .carriage = Carriage::packet, .with_words = true}),
    row("announced", {.with_words = true, .announces = true}),
    row("deaf",
        {.block = 256, .servers = 2, .carriage = Carriage::packet, .unheard = kUnheardBlock}),
    row("greedy", {.block = 1}),
    {.library = "test",
     .func = Func::all_reduce,
     .name = "many-slots",
     .ends = [](int size, const Communicator& comm) -> std::unique_ptr<Ends> {
       return std::make_unique<SlotScheme>(size, comm, kManySlots);
     }},
};

}  // namespace

GHOSTRANK_PLUGIN(kRows)
