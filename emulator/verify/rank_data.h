// What a rank holds in one call of a collective, in verify mode: its buffers, and every access to
// them.
//
// Memory bandwidth is the limit, so each tile of the work buffer is touched as rarely as possible.
// A tile is filled when it is first accessed, and compared with what the collective promises as
// soon as it has been written to its end, while it is cached. A tile that is right then, and that
// nobody writes to again, is not compared a second time. check() compares all other tiles at the
// end of the call.
//
// Units: elements. Threading: one owner. Memory: the buffers, and a byte per tile (kTileElements).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/schedule.h"
#include "emulator/verify/call_content.h"
#include "emulator/verify/spare_buffers.h"
#include "emulator/verify/verify.h"

namespace ghostrank {

class RankData {
 public:
  // Takes its buffers from `spare` and returns them there; `spare` and `schedule` must outlive this
  // object. `content` describes the data that is reduced; `bound` is that of RankCall.
  RankData(const Schedule& schedule, DataType type, GroupRank rank, std::uint64_t salt,
           SpareBuffers& spare, const CallContent& content = {}, double bound = 0);
  ~RankData();
  RankData(const RankData&) = delete;
  RankData& operator=(const RankData&) = delete;

  // Copies the elements of a block to `to`.
  void read(const Block& from, std::byte* to);
  // Writes to.count elements into the block, or adds them to its elements.
  void write(const Block& to, const std::byte* from, Combine how);
  void apply(const Local& local);

  // Compares every element that the collective promises; call it after the last access.
  Checked check();

 private:
  enum class State : std::uint8_t { unmade, made, right };

  std::byte* at(const Block& block) const;
  Range tile_at(std::uint64_t element) const;
  void make(Range tile);
  bool is_right(Range tile) const;
  void combine(std::byte* into, const std::byte* from, std::uint64_t count, Combine how) const;

  const CallContent content_;
  const RankCall call_;
  SpareBuffers& spare_;
  const std::uint64_t elements_;  // of the work buffer
  // Otherwise the whole buffer is filled at once: in blocks of many sizes, finding the elements of
  // a tile takes longer than the tile itself, and a compressed payload cannot be made in parts.
  const bool by_tiles_;
  std::array<std::uint64_t, 3> bytes_;
  std::array<Payload, 3> buffers_;  // by Buffer
  std::vector<State> tiles_;        // of the work buffer
};

}  // namespace ghostrank
