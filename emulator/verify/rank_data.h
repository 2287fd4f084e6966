// What a rank holds in one call of a collective, in verify mode: its buffers, and every access to
// them.
//
// Memory is the limit, so the work buffer is passed over as seldom as can be, row by row: a row is
// made when it is first needed, and compared with what the collective promises as soon as it has
// been written to its end, while it is in the cache. If it holds it then, and nobody writes to it
// again, it need not be looked at once more. What is at the end of a call not known to be right is
// compared there.
//
// Units: elements. Threading: one owner. Memory: the buffers, and a byte per row (kRowElements).
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
  // The buffers come from `spare` and go back there; it and the schedule outlive this. `content`:
  // of what is reduced, and `bound`, as RankCall has them.
  RankData(const Schedule& schedule, DataType type, Rank rank, std::uint64_t salt,
           SpareBuffers& spare, const CallContent& content = {}, double bound = 0);
  ~RankData();
  RankData(const RankData&) = delete;
  RankData& operator=(const RankData&) = delete;

  // Copies elements of a block out.
  void read(const Block& from, std::byte* to);
  // Puts as many as the block has there, or adds them to what is there.
  void write(const Block& to, const std::byte* from, Combine how);
  void apply(const Local& local);

  // Every element that the collective promises, after the last access.
  Checked check();

 private:
  enum class State : std::uint8_t { unmade, made, right };

  std::byte* at(const Block& block) const;
  Range row_at(std::uint64_t element) const;
  void make(Range row);
  bool is_right(Range row) const;
  void combine(std::byte* into, const std::byte* from, std::uint64_t count, Combine how) const;

  const CallContent content_;
  const RankCall call_;
  SpareBuffers& spare_;
  const std::uint64_t elements_;  // of the work buffer
  // Or all at once: to find a row's place among blocks of many sizes takes longer than the row, and
  // a payload is made whole.
  const bool by_rows_;
  std::array<std::uint64_t, 3> bytes_;
  std::array<Payload, 3> buffers_;  // by Buffer
  std::vector<State> rows_;         // of the work buffer
};

}  // namespace ghostrank
