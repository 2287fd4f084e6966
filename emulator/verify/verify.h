// Verify mode: every rank holds real data, the reduction is real, and the result is compared
// element by element with what the collective promises, or within what a scheme states that it
// rounds (Ends::error_bound() in agent.h). What ranks hold (verify_values.h, or where
// the job says how sparse its tensors are, tensor_content.h) sums up exactly, so one wrong bit is
// one wrong element whatever the order of the additions. Which part of a rank's buffers is made or
// compared when is rank_data.h's.
//
// Units: elements. Threading: free functions on the caller's buffers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/schedule.h"
#include "collectives/tensor_content.h"
#include "emulator/verify/call_content.h"
#include "profiles/workload/program.h"

namespace ghostrank {

// A rank in one call of a collective. `salt` varies the data from call to call.
struct RankCall {
  const Collective& collective;
  DataType type;
  Rank rank;
  std::uint64_t salt;
  bool out_of_place;  // its input is what the collective finds in the work buffer of another
  const TensorContent* content = nullptr;  // of what is reduced; null: as verify_values.h draws it
  const CompressedContent* compressed = nullptr;  // not null: its payloads (verify_compressed.h)
  // By how much an element of a float may be off, before it is rounded to its type; 0: exact.
  double bound = 0;
};

// Elements [first, first + count) of a buffer.
struct Range {
  std::uint64_t first = 0, count = 0;
};

// Writes what the collective expects before its first step; places that it must fill itself are
// poisoned, out of place the whole work buffer. The input comes first: what is in the work buffer
// may be of it. No input: nothing is done.
void fill_input(const RankCall& call, std::byte* input);
void fill_work(const RankCall& call, Range range, const std::byte* input, std::byte* work);

// How much of a part of the work buffer is promised, and how much of that is not as promised.
struct Checked {
  std::uint64_t elements = 0, wrong = 0;
};
Checked check_work(const RankCall& call, Range range, const std::byte* work);
std::uint64_t promised_elements(const RankCall& call, Range range);

}  // namespace ghostrank
