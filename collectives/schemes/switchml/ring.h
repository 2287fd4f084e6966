// A call of the scheme `switchml`, or the rest of one, without the switch: its chunks travel around
// the ring of the rail's workers, which sum the same integers as the switch would. So the results
// are the same to the last bit.
//
//   slice    the chunks of a piece (rails.h) that one worker, the owner, gives or takes; of an
//            all-reduce all chunks of piece p, with owner p % n
//
//   trip              goes from           to        on the way
//   exponents up      behind the owner    owner     maximum; of floats only
//   exponents down    owner               all
//   values up         behind the owner    owner     sum; unless one worker alone gives
//   values down       owner               all       unless one worker alone takes
//
// Every trip has n - 1 hops, so a worker sends 2(n-1)/n S of an all-reduce, as around any ring, and
// for floats 2(n-1)/n bytes more per chunk; (n-1)/n S where one worker alone gives or takes. S: in
// whole words of 4 bytes. Slices leave as soon as their piece is complete on the node.
//
// Threading: one owner.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "collectives/schemes/shared/kept_note.h"
#include "collectives/schemes/shared/rails.h"
#include "collectives/schemes/shared/worker_part.h"

namespace ghostrank::switchml {

// What a worker holds of the call. Vectors are empty where ranks hold no real data.
class RingChunks {
 public:
  virtual ~RingChunks() = default;
  virtual bool has_result(std::uint64_t chunk) const = 0;               // before the ring begins
  virtual std::int8_t exponent(Io& io, std::uint64_t chunk) const = 0;  // of this worker's values
  virtual void agree(std::uint64_t chunk, std::int8_t exponent) = 0;  // that of all workers' values
  virtual std::vector<std::int32_t> values(Io& io, std::uint64_t chunk) const = 0;  // at that one
  virtual void finish(Io& io, std::uint64_t chunk, std::span<const std::int32_t> result) = 0;
};

class Ring {
 public:
  struct Location {
    const Rails& rails;
    int rail = 0, node = 0;
  };
  // `share` outlives the ring. `exponents`: the values are floats.
  Ring(Location location, const RailShare& share, const Call& call, bool exponents, bool real,
       RingChunks& chunks, Outbox& outbox);

  std::uint32_t call() const { return call_; }
  bool ended() const { return left_ == 0; }
  // The node has given this many pieces.
  void ready(Io& io, std::uint64_t pieces);
  // Returns false, and leaves the note, while its piece is not complete here.
  bool take(Io& io, const Note& note);
  // The next chunk that has its result, or has passed where this worker takes none.
  MaybeChunk next();

 private:
  enum class Trip : std::uint8_t { exponents_up, exponents_down, values_up, values_down };
  struct Slice {
    std::uint64_t piece = 0;
    int owner = 0;
    std::vector<std::uint64_t> chunks;
  };

  Slice slice(std::uint64_t piece, int owner) const;
  int owner_of(std::uint64_t chunk) const;
  std::uint64_t words_of(std::uint64_t chunk) const;
  bool behind(const Slice& slice) const { return me_ == (slice.owner + 1) % workers_; }
  void begin(Io& io, Trip trip, const Slice& slice);
  void pass(Io& io, Trip trip, const Slice& slice, std::span<const std::byte> content);
  void go_up(Io& io, Trip trip, const Slice& slice, std::span<const std::byte> content);
  void go_down(Io& io, Trip trip, const Slice& slice, std::span<const std::byte> content);
  std::vector<std::byte> mine(Io& io, Trip trip, const Slice& slice) const;
  void agree(const Slice& slice, std::span<const std::byte> exponents);
  void finish(Io& io, const Slice& slice, std::span<const std::byte> values);
  void done(const Slice& slice);

  const Location location_;
  const RailShare& share_;
  const int me_, workers_;
  const std::uint32_t call_;
  const std::uint32_t element_bytes_;  // as they travel
  const bool exponents_, real_;
  RingChunks& chunks_;
  Outbox& outbox_;
  std::uint64_t ready_ = 0;  // pieces
  std::uint64_t left_ = 0;   // chunks
  std::deque<std::uint64_t> done_;
};

}  // namespace ghostrank::switchml
