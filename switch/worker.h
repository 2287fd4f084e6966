// SwitchML's worker: which chunk may leave in which slot, and what a result lets leave next. It
// knows no packets, elements, clock or transport; the switch's side is pool.h.
//
//   packet p of a job      0  1  2 .. W-1 | W ...            W: the window, W slots with two sets
//   leaves                 at once        | when p - W has its result, which is its credit
//   in slot, set           (first + p) % W, (first + p) / W % 2      first: packets of earlier jobs
//
// Jobs come one after the other. The slots of the next go on where those of this one ended, so a
// slot's sets take turns over all jobs, which is what keeps the sum before for whom it was lost.
//
// Where values are floats, packet p brings the exponent of chunk p and the values of chunk
// p - L, whose exponent all workers then agree on: L packets more, L = min(W, chunks).
//
// Source: the client of p4lang/p4app-switchML, by its behaviour. Units: packets, chunks.
// Threading: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ghostrank::switchml {

class Worker {
 public:
  static constexpr std::int64_t kNone = -1;
  struct Chunk {
    std::uint64_t packet = 0;  // of the job
    std::uint16_t slot = 0;
    std::uint8_t set = 0;
    std::int64_t values = kNone, exponent = kNone;  // chunks that it brings these of
  };

  explicit Worker(int window);  // 1 .. kMaxSlots

  // The one before has ended. A job of no chunks ends at once.
  void start(std::uint64_t chunks, bool exponents);
  // What may leave now and has not, in order; nobody asks again for what was handed out.
  std::optional<Chunk> next();
  // A result has come; what it is of, or none: it is of no chunk that is under way.
  std::optional<Chunk> result(std::uint16_t slot, std::uint8_t set);
  // What is under way in a slot, to be sent again; none: nothing.
  std::optional<Chunk> under_way(std::uint16_t slot) const;
  bool ended() const { return ended_ == packets_; }
  std::uint64_t packets() const { return packets_; }  // of the job

  // Of any job.
  static std::uint64_t packets_of(std::uint64_t chunks, bool exponents, int window);

 private:
  struct Slot {
    bool busy = false;
    std::uint64_t packet = 0;
  };
  Chunk chunk_of(std::uint64_t packet) const;
  bool may_leave(std::uint64_t packet) const;
  void let_leave(std::uint64_t packet);
  bool has_result(std::uint64_t packet) const { return done_[packet]; }

  const std::uint64_t window_;
  std::uint64_t first_ = 0;  // packets of earlier jobs, modulo twice the window
  std::uint64_t chunks_ = 0, packets_ = 0, ahead_ = 0, ended_ = 0;
  std::vector<bool> done_, left_;     // by packet of the job
  std::vector<Slot> slots_;           // under way
  std::vector<std::uint64_t> ready_;  // to leave, the first at next_
  std::size_t next_ = 0;
};

}  // namespace ghostrank::switchml
