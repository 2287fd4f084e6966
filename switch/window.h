// SwitchML's worker: which chunk it may send in which slot, and what a result allows it to send
// next. It knows no packets, elements, clock or transport; the switch's side is pool.h.
//
//   packet p of a job      0  1  2 .. W-1 | W ...            W: the window, W slots with two sets
//   is sent                at once        | after the result of p - W, which is its credit
//   in slot, set           (first + p) % W, (first + p) / W % 2      first: packets of earlier jobs
//
// Jobs follow each other. The slots of the next job continue where those of this job ended, so the
// sets of a slot alternate across jobs, and the other set keeps the previous sum for workers that
// lost its result.
//
// If values are floats, packet p carries the exponent of chunk p and the values of chunk p - L, on
// whose exponent all workers have agreed by then. That takes L more packets; L = min(W, chunks).
//
// Source: the behaviour of the client of p4lang/p4app-switchML. Units: packets, chunks. Threading:
// one owner.
//
// The functions called per packet are inline: a call would return the chunk in memory, and reading
// it in wider parts than it was stored in would stall on store forwarding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ghostrank::switchml {

class Window {
 public:
  static constexpr std::int64_t kNone = -1;
  struct Chunk {
    std::uint64_t packet = 0;  // of the job
    std::uint16_t slot = 0;
    std::uint8_t set = 0;
    std::int64_t values = kNone, exponent = kNone;  // chunks whose values and exponent it carries
  };

  explicit Window(int window);  // 1 .. kMaxSlots

  // Starts a job; the previous one must have ended. A job of no chunks ends at once.
  void start(std::uint64_t chunks, bool exponents);
  // The next chunk that may be sent and was not handed out yet, in order; empty: none. next() hands
  // it out, each chunk once; upcoming() only looks.
  std::optional<Chunk> next() {
    const std::optional<Chunk> chunk = upcoming();
    if (!chunk) return chunk;
    if (++next_ == ready_.size()) {
      ready_.clear();
      next_ = 0;
    }
    slots_[chunk->slot] = {true, *chunk};
    return chunk;
  }
  std::optional<Chunk> upcoming() const {
    if (next_ == ready_.size()) return std::nullopt;
    return chunk_of(ready_[next_]);
  }
  // Takes a result; returns the chunk that it answers. Empty: the slot and set match no chunk in
  // flight.
  std::optional<Chunk> result(std::uint16_t slot, std::uint8_t set) {
    const std::optional<Chunk> chunk = in_flight(slot);
    if (!chunk || chunk->set != set) return std::nullopt;
    slots_[slot].busy = false;
    done_[chunk->packet] = true;
    ++ended_;
    let_leave(chunk->packet + window_);
    if (ahead_ > 0 && ahead_ != window_) let_leave(chunk->packet + ahead_);
    return chunk;
  }
  // The chunk in flight in a slot, to be sent again; empty: none.
  std::optional<Chunk> in_flight(std::uint16_t slot) const {
    if (slot >= window_ || !slots_[slot].busy) return std::nullopt;
    return slots_[slot].chunk;
  }
  bool ended() const { return ended_ == packets_; }
  // Whether the values of the job's chunk have their result.
  bool has_values(std::uint64_t chunk) const { return done_[chunk + ahead_]; }
  std::uint16_t window() const { return static_cast<std::uint16_t>(window_); }
  std::uint64_t packets() const { return packets_; }  // of the job

  // Returns how many packets a worker sends in a job.
  static std::uint64_t packets_of(std::uint64_t chunks, bool exponents, int window);

 private:
  struct Slot {
    bool busy = false;
    Chunk chunk;
  };
  Chunk chunk_of(std::uint64_t packet) const {
    const std::uint64_t at = first_ + packet;
    return {packet, static_cast<std::uint16_t>(at % window_),
            static_cast<std::uint8_t>(at / window_ % 2),
            packet >= ahead_ ? static_cast<std::int64_t>(packet - ahead_) : kNone,
            ahead_ > 0 && packet < chunks_ ? static_cast<std::int64_t>(packet) : kNone};
  }
  bool may_leave(std::uint64_t packet) const {
    if (packet >= packets_ || left_[packet]) return false;
    const bool free = packet < window_ || has_result(packet - window_);
    return free && (packet < ahead_ || ahead_ == 0 || has_result(packet - ahead_));
  }
  void let_leave(std::uint64_t packet) {
    if (!may_leave(packet)) return;
    left_[packet] = true;
    ready_.push_back(packet);
  }
  bool has_result(std::uint64_t packet) const { return done_[packet]; }

  const std::uint64_t window_;
  std::uint64_t first_ = 0;  // packets of earlier jobs, modulo 2 * window
  std::uint64_t chunks_ = 0, packets_ = 0, ahead_ = 0, ended_ = 0;
  std::vector<bool> done_, left_;     // by packet of the job
  std::vector<Slot> slots_;           // chunks in flight, by slot
  std::vector<std::uint64_t> ready_;  // packets to send, the next one at next_
  std::size_t next_ = 0;
};

}  // namespace ghostrank::switchml
