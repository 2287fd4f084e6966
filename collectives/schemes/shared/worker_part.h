// A worker's part of a call, as its rank sees it (member.h): the rank hands it the sums of its
// node, piece by piece, and gets chunks with results. What happens between workers is the scheme's.
//
// Threading: one owner.
#pragma once

#include <cstdint>
#include <optional>

#include "collectives/schemes/shared/node_sum.h"
#include "collectives/schemes/shared/rails.h"

namespace ghostrank {

// A chunk's number, or none, in one word: a std::optional is written by two stores and read by one
// load, which would stall on store forwarding at every packet.
class MaybeChunk {
 public:
  MaybeChunk(std::nullopt_t) {}
  MaybeChunk(std::uint64_t number) : number_(number) {}
  explicit operator bool() const { return number_ != kNone; }
  std::uint64_t operator*() const { return number_; }

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::uint64_t number_ = kNone;
};

class WorkerPart {
 public:
  explicit WorkerPart(int rail) : rail_(rail) {}
  virtual ~WorkerPart() = default;
  WorkerPart(const WorkerPart&) = delete;
  WorkerPart& operator=(const WorkerPart&) = delete;

  int rail() const { return rail_; }
  NodeSum& sum() { return sum_; }

  virtual void start(Io& io, const Call& call, const RailShare& share, bool real) = 0;
  // All ranks of the node have given pieces 0 .. `pieces` - 1: their chunks may leave.
  virtual void pieces_ready(Io& io, std::uint64_t pieces) = 0;
  // Returns the chunk whose result is now there; empty: the note brings none.
  virtual MaybeChunk take(Io& io, GroupParty from, const Note& note) = 0;
  virtual bool ended() const = 0;
  // True if no other rank of the node gives or takes elements of the call: the part reads its
  // rank's tensor and writes results there, and sum() holds nothing.
  virtual bool in_place() const { return false; }
  // True for a note of another worker that needs no open call: take() gets it at once.
  virtual bool takes_always(const Note&) const { return false; }
  // True if notes of a later call must not be dropped.
  virtual bool keeps_notes() const { return false; }
  // The next chunk whose result is there without a note of its own: because the worker is the only
  // one of its rail, so that its node's sum is the result, or because something waited for that
  // sum.
  virtual MaybeChunk next_result(Io&) { return std::nullopt; }
  virtual void tick(Io&) {}
  virtual void on_room(Io&) {}

 protected:
  NodeSum sum_;

 private:
  int rail_;
};

}  // namespace ghostrank
