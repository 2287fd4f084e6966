// Verify mode: every rank holds real data, the reduction is real, and the result is compared
// element by element with what the collective promises. What ranks hold (verify_values.h) sums up
// exactly, so one wrong bit is one wrong element whatever the order of the additions.
//
// Units: elements. Threading: free functions on the caller's buffers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/schedule.h"
#include "profiles/program.h"

namespace ghostrank {

// Fills a rank's work and input buffers as the collective expects them before its first step;
// places that the collective must fill itself are poisoned: out of place the whole work buffer.
// `salt` varies the data from call to call.
void fill_buffers(const Collective& c, DataType type, Rank rank, std::uint64_t salt,
                  bool out_of_place, std::byte* work, std::byte* input);

// into[i] += from[i].
void add_elements(DataType type, std::byte* into, const std::byte* from, std::uint64_t count);

struct Checked {
  std::uint64_t elements = 0, wrong = 0;
};
Checked check_buffers(const Collective& c, DataType type, Rank rank, std::uint64_t salt,
                      const std::byte* work);

}  // namespace ghostrank
