// Schemes for the tests of the agent checker: right ones unless told to make a mistake.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <vector>

#include "collectives/agent.h"
#include "collectives/layout.h"

namespace ghostrank::testing {

enum class Mistake {
  none,
  says_done_twice,
  says_done_early,
  says_done_of_another,
  forgets_what_was_refused,
  promises_other_traffic,
  sends_to_itself,
  sends_to_nobody_known,
  sends_twice_at_once,
  says_too_much,
  sends_half_the_content,
  reads_too_far,
  writes_too_far,
  keeps_the_tensor,
  keeps_what_was_read,
  helper_says_done,
  throws,
  adds_again,
  forgets_the_timer,
  mixes_up_calls,
  chatters,
  takes_zeros_for_all,
  refuses_zeros,
};

// Every rank sends its data to the ranks that need it, as reliable notes; serves every function.
//
//   Transfer   `source`, `target`: index of the first element at sender and receiver
class Direct final : public Ends {
 public:
  Direct(int size, Mistake mistake = Mistake::none) : Ends(size), mistake_(mistake) {}

  struct Transfer {
    GroupRank from = 0, to = 0;
    std::uint64_t source = 0, target = 0, count = 0;
    bool adds = false;
  };
  static std::vector<Transfer> transfers(const Collective& c) {
    const Layout layout(c);
    std::vector<Transfer> list;
    for (GroupRank s = 0; s < c.size; ++s)
      for (GroupRank t = 0; t < c.size; ++t) {
        if (s == t) continue;
        const Block whole{0, work_elements(c, t)}, mine = layout.work(t, s),
                                                   its = layout.work(t, t);
        switch (c.func) {
          case Func::all_reduce:
            list.push_back({s, t, 0, 0, whole.count, true});
            break;
          case Func::reduce:
            if (t == c.root) list.push_back({s, t, 0, 0, whole.count, true});
            break;
          case Func::reduce_scatter:
            list.push_back({s, t, its.offset, its.offset, its.count, true});
            break;
          case Func::all_gather:
          case Func::all_gather_v:
            list.push_back({s, t, mine.offset, mine.offset, mine.count, false});
            break;
          case Func::gather:
            if (t == c.root) list.push_back({s, t, mine.offset, mine.offset, mine.count, false});
            break;
          case Func::scatter:
            if (s == c.root) list.push_back({s, t, its.offset, its.offset, its.count, false});
            break;
          case Func::broadcast:
            if (s == c.root) list.push_back({s, t, 0, 0, whole.count, false});
            break;
          case Func::send_recv:
            if (s == c.root && t == c.target) list.push_back({s, t, 0, 0, whole.count, false});
            break;
          case Func::barrier:
            list.push_back({s, t, 0, 0, 0, false});
            break;
          case Func::all_to_all:
          case Func::all_to_all_v: {
            const Block out = layout.input(s, t);
            list.push_back({s, t, out.offset, mine.offset, out.count, false});
            break;
          }
        }
      }
    return list;
  }

  std::unique_ptr<Agent> agent(GroupParty party) const override {
    return std::make_unique<Member>(party, size(), mistake_);
  }
  std::vector<Edge> traffic(const Call& call) const override {
    std::vector<Edge> edges;
    const std::uint64_t extra = mistake_ == Mistake::promises_other_traffic ? 1 : 0;
    for (const Transfer& t : transfers(call.collective))
      edges.push_back({t.from, t.to, 8 + t.count * bytes_of(call.type) + extra, 1});
    return edges;
  }
  std::uint64_t overhead_bytes() const override { return 8; }
  std::string refuses(const Call& call) const override {
    if (mistake_ == Mistake::refuses_zeros && call.sparsity.density < 1) return "no zeros";
    return call.collective.func == Func::all_reduce && call.type == DataType::uint8 ? "no uint8"
                                                                                    : "";
  }

 private:
  class Member final : public Agent {
   public:
    Member(GroupRank rank, int size, Mistake mistake)
        : rank_(rank), size_(size), mistake_(mistake) {}

    void on_call(Io& io, const Call& call) override {
      Part& part = parts_[call.number];
      part.call = call;
      for (const Transfer& t : transfers(call.collective)) {
        if (t.to == rank_) part.in[t.from] = t;
        if (t.from == rank_) out_.push_back({call.number, t});
      }
      part.come = true;
      blunder(io, call);
      flush(io);
    }
    void on_note(Io& io, GroupParty from, const Note& note) override {
      parts_[note.call].arrived[from].assign(note.content.begin(), note.content.end());
      advance(io, note.call);
    }
    void on_room(Io& io) override { flush(io); }

   private:
    struct Part {
      Call call;
      bool come = false;
      std::map<GroupRank, Transfer> in;
      std::map<GroupRank, std::vector<std::byte>> arrived;
    };
    struct Outgoing {
      std::uint32_t call;
      Transfer transfer;
    };

    void flush(Io& io) {
      while (!out_.empty()) {
        const auto [number, t] = out_.front();
        const Call& call = parts_[number].call;
        Note note{.call = number, .type = call.type, .elements = t.count};
        note.content = io.tensor(number).read(t.source, t.count);
        if (mistake_ == Mistake::keeps_what_was_read) io.tensor(number).read(0, 0);
        if (mistake_ == Mistake::sends_half_the_content)
          note.content = note.content.first(note.content.size() / 2);
        std::vector<std::byte> zeros;
        if (mistake_ == Mistake::takes_zeros_for_all && t.count > 0 &&
            !io.tensor(number).nonzero(t.source, 1)) {
          zeros.resize(note.content.size());
          note.content = zeros;
        }
        const bool sent = io.send(t.to, note, Carriage::reliable);
        if (!sent && mistake_ != Mistake::forgets_what_was_refused) break;
        out_.pop_front();
      }
      std::vector<std::uint32_t> open;
      for (const auto& [number, part] : parts_) open.push_back(number);
      for (const std::uint32_t number : open) advance(io, number);
    }

    // Applies the notes that have arrived, unless the call's own tensor is still to be sent.
    void advance(Io& io, std::uint32_t number) {
      Part& part = parts_[number];
      const bool sending = std::any_of(out_.begin(), out_.end(),
                                       [&](const Outgoing& o) { return o.call == number; });
      if (!part.come || sending) return;
      for (const auto& [from, content] : part.arrived) put(io, part, from, content);
      part.arrived.clear();
      const bool early = mistake_ == Mistake::says_done_early && rank_ == 1;
      if (!part.in.empty() && !early) return;
      if (mistake_ == Mistake::says_done_of_another && rank_ == 0) return io.done(number + 7);
      io.done(number);
      if (mistake_ == Mistake::says_done_twice && rank_ == 1) io.done(number);
      parts_.erase(number);
    }

    void put(Io& io, Part& part, GroupRank from, const std::vector<std::byte>& content) {
      const Transfer t = part.in.at(from);
      part.in.erase(from);
      if (content.empty()) return;
      std::vector<std::byte> sum = content;
      Tensor& tensor = io.tensor(part.call.number);
      if (t.adds) {
        const auto own = tensor.read(t.target, t.count);
        add_elements(part.call.type, sum.data(), own.data(), t.count);
      }
      tensor.write(t.target, sum);
    }

    void blunder(Io& io, const Call& call) {
      std::vector<std::byte> words(kMostWords + 1);
      std::vector<std::byte> element(bytes_of(call.type));
      Note note{.call = call.number, .type = call.type};
      if (mistake_ == Mistake::sends_to_itself) io.send(rank_, note, Carriage::reliable);
      if (mistake_ == Mistake::sends_to_nobody_known) io.send(size_, note, Carriage::reliable);
      if (mistake_ == Mistake::sends_twice_at_once) {
        const GroupParty other = rank_ == 0 ? 1 : 0;
        io.send(std::vector<GroupParty>{other, other}, note, Carriage::reliable);
      }
      if (mistake_ == Mistake::says_too_much) {
        note.words = words;
        io.send(rank_ == 0 ? 1 : 0, note, Carriage::reliable);
      }
      if (mistake_ == Mistake::reads_too_far)
        io.tensor(call.number).read(work_elements(call.collective, rank_), 1);
      if (mistake_ == Mistake::writes_too_far)
        io.tensor(call.number).write(work_elements(call.collective, rank_), element);
      if (mistake_ == Mistake::keeps_the_tensor) {
        if (kept_) kept_->read(0, 1);
        kept_ = &io.tensor(call.number);
      }
      if (mistake_ == Mistake::throws && rank_ == 1) throw std::runtime_error("out of ideas");
    }

    GroupRank rank_;
    int size_;
    Mistake mistake_;
    std::map<std::uint32_t, Part> parts_;
    std::deque<Outgoing> out_;
    Tensor* kept_ = nullptr;
  };

  Mistake mistake_;
};

// All-reduce by packets through a server. Ranks retransmit after a timeout, and the server answers
// again.
class Asking final : public Ends {
 public:
  Asking(int size, Survives survives, Mistake mistake = Mistake::none)
      : Ends(size), survives_(survives), mistake_(mistake) {}

  std::vector<Helper> helpers() const override { return {{}}; }
  std::unique_ptr<Agent> agent(GroupParty party) const override {
    if (party == size()) return std::make_unique<Server>(size(), mistake_);
    return std::make_unique<Member>(size(), mistake_);
  }
  std::vector<Edge> traffic(const Call& call) const override {
    std::vector<Edge> edges;
    const std::uint64_t bytes = call.collective.count * bytes_of(call.type);
    for (GroupRank r = 0; r < size(); ++r) {
      edges.push_back({r, size(), bytes, 1, Carriage::packet});
      edges.push_back({size(), r, bytes, 1, Carriage::packet});
    }
    return edges;
  }
  Survives survives() const override { return survives_; }

 private:
  class Member final : public Agent {
   public:
    Member(int size, Mistake mistake) : size_(size), mistake_(mistake) {}
    void on_call(Io& io, const Call& call) override {
      open_[call.number] = call;
      ask(io, call.number);
    }
    void on_timer(Io& io, std::uint32_t number) override { ask(io, number); }
    void on_note(Io& io, GroupParty, const Note& note) override {
      if (open_.erase(note.call) == 0) return;
      io.disarm(note.call);
      io.tensor(note.call).write(0, note.content);
      io.done(note.call);
    }

   private:
    void ask(Io& io, std::uint32_t number) {
      const Call& call = open_[number];
      Note note{.call = number, .type = call.type, .elements = call.collective.count};
      note.content = io.tensor(number).read(0, note.elements);
      io.send(size_, note, Carriage::packet);
      if (mistake_ != Mistake::forgets_the_timer) io.arm(number, 100'000'000);
    }
    int size_;
    Mistake mistake_;
    std::map<std::uint32_t, Call> open_;
  };

  class Server final : public Agent {
   public:
    Server(int size, Mistake mistake) : size_(size), mistake_(mistake) {}
    void on_timer(Io& io, std::uint32_t timer) override { io.arm(timer, 1000); }
    void on_note(Io& io, GroupParty from, const Note& note) override {
      if (mistake_ == Mistake::chatters) io.arm(0, 1000);
      if (mistake_ == Mistake::helper_says_done) io.done(note.call);
      io.spend(100'000);
      // With one slot for all calls, a late packet of one call counts for another.
      Slot& slot = slots_[mistake_ == Mistake::mixes_up_calls ? 0 : note.call];
      if (mistake_ == Mistake::mixes_up_calls && slot.complete && note.call != slot.call) slot = {};
      slot.call = note.call;
      const bool again = !slot.from.insert(from).second;
      if (!again || (mistake_ == Mistake::adds_again && !slot.complete)) slot.sum.add(note);
      if (std::ssize(slot.from) < size_) return;
      Note answer{.call = note.call, .type = note.type, .elements = note.elements};
      answer.content = slot.sum.content();
      if (slot.complete) {
        io.send(from, answer, Carriage::packet);
        return;
      }
      slot.complete = true;
      std::vector<GroupParty> all;
      for (GroupRank r = 0; r < size_; ++r) all.push_back(r);
      io.send(all, answer, Carriage::packet);
    }

   private:
    struct Slot {
      std::uint32_t call = 0;
      std::set<GroupParty> from;
      bool complete = false;
      Sum sum;
    };
    int size_;
    Mistake mistake_;
    std::map<std::uint32_t, Slot> slots_;
  };

  Survives survives_;
  Mistake mistake_;
};

// Rank 0 sends numbers and rank 1 expects them in order: tests the guarantees that schemes rely on.
class Counting final : public Ends {
 public:
  static constexpr std::uint32_t kNumbers = 20;
  Counting(Carriage carriage, Survives survives)
      : Ends(2), carriage_(carriage), survives_(survives) {}

  std::unique_ptr<Agent> agent(GroupParty party) const override {
    if (party == 0) return std::make_unique<Speaker>(carriage_);
    return std::make_unique<Listener>();
  }
  std::vector<Edge> traffic(const Call&) const override { return {{0, 1, 0, kNumbers, carriage_}}; }
  Survives survives() const override { return survives_; }

 private:
  class Speaker final : public Agent {
   public:
    explicit Speaker(Carriage carriage) : carriage_(carriage) {}
    void on_call(Io& io, const Call& call) override {
      for (std::uint32_t i = 0; i < kNumbers; ++i)
        io.send(1, {.call = call.number, .index = i}, carriage_);
      io.done(call.number);
    }

   private:
    Carriage carriage_;
  };

  class Listener final : public Agent {
   public:
    void on_call(Io& io, const Call& call) override {
      call_ = call.number;
      come_ = true;
      finish(io);
    }
    void on_note(Io& io, GroupParty, const Note& note) override {
      if (note.index != heard_++) throw std::runtime_error("out of order");
      finish(io);
    }

   private:
    void finish(Io& io) const {
      if (come_ && heard_ == kNumbers) io.done(call_);
    }
    std::uint32_t call_ = 0, heard_ = 0;
    bool come_ = false;
  };

  Carriage carriage_;
  Survives survives_;
};

}  // namespace ghostrank::testing
