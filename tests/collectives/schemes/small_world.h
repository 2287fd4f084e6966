// Plays the agents of a communicator with tensors of given content: notes arrive in order, none is
// lost, no timer fires. For tests that need other numbers than the agent checker's integers.
#pragma once

#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/agent.h"

namespace ghostrank::testing {

class SmallWorld {
 public:
  // `tensors`: the work buffer of each rank. `site`: shared by all parties; null: the world's own.
  SmallWorld(const Ends& ends, const Call& call, std::vector<std::vector<std::byte>> tensors,
             Site* site = nullptr)
      : ends_(ends), call_(call), tensors_(std::move(tensors)) {
    const auto parties = static_cast<std::size_t>(ends.size()) + ends.helpers().size();
    for (std::size_t p = 0; p < parties; ++p)
      agents_.push_back(ends.agent_at(static_cast<GroupParty>(p), site ? *site : own_));
    done_.resize(tensors_.size());
    notes_to_.resize(agents_.size());
  }

  // Plays the call, for which all ranks must report done; returns the work buffers.
  const std::vector<std::vector<std::byte>>& play() {
    for (GroupParty r = 0; r < ends_.size(); ++r) {
      Lent io(*this, r);
      agents_[r]->on_call(io, call_);
    }
    for (; !notes_.empty(); notes_.pop_front()) {
      Sent& sent = notes_.front();
      sent.note.content = sent.content;
      sent.note.words = sent.words;
      Lent io(*this, sent.to);
      agents_[sent.to]->on_note(io, sent.from, sent.note);
    }
    for (const bool done : done_) EXPECT_TRUE(done);
    return tensors_;
  }

  std::uint64_t notes_to(GroupParty party) const { return notes_to_[party]; }

 private:
  struct Sent {
    GroupParty from, to;
    Note note;
    std::vector<std::byte> content, words;
  };
  class Buffer final : public Tensor {
   public:
    Buffer(std::vector<std::byte>& bytes, std::size_t element) : bytes_(bytes), element_(element) {}
    std::span<const std::byte> read(std::uint64_t first, std::uint64_t elements) override {
      const std::size_t begin = std::min(bytes_.size(), first * element_);
      return std::span(bytes_).subspan(begin, std::min(bytes_.size() - begin, elements * element_));
    }
    void write(std::uint64_t first, std::span<const std::byte> elements) override {
      if (!elements.empty())
        std::memcpy(bytes_.data() + first * element_, elements.data(), elements.size());
    }
    bool nonzero(std::uint64_t, std::uint64_t) override { return true; }

   private:
    std::vector<std::byte>& bytes_;
    std::size_t element_;
  };
  class Lent final : public Io {
   public:
    Lent(SmallWorld& world, GroupParty party)
        : world_(world),
          party_(party),
          buffer_(world.tensors_[party < world.ends_.size() ? party : 0],
                  bytes_of(world.call_.type)) {}
    bool send(std::span<const GroupParty> to, const Note& note, Carriage) override {
      for (const GroupParty party : to) {
        ++world_.notes_to_[party];
        world_.notes_.push_back({party_,
                                 party,
                                 note,
                                 {note.content.begin(), note.content.end()},
                                 {note.words.begin(), note.words.end()}});
      }
      return true;
    }
    void arm(std::uint32_t, Picoseconds) override {}
    void disarm(std::uint32_t) override {}
    void spend(Picoseconds) override {}
    void done(std::uint32_t) override { world_.done_[party_] = true; }
    Tensor& tensor(std::uint32_t) override { return buffer_; }

   private:
    SmallWorld& world_;
    GroupParty party_;
    Buffer buffer_;
  };

  const Ends& ends_;
  const Call call_;
  std::vector<std::vector<std::byte>> tensors_;
  std::vector<std::unique_ptr<Agent>> agents_;
  std::vector<bool> done_;
  std::vector<std::uint64_t> notes_to_;  // by party
  Site own_;
  std::deque<Sent> notes_;
};

}  // namespace ghostrank::testing
