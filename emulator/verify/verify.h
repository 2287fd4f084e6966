// Verify mode: every rank holds real data, the reduction is real, and the result is compared
// element by element with what the collective promises, or with a tolerance if a scheme states that
// it rounds (Ends::error_bound() in collectives/agent.h). The data of ranks (verify/values.h, or
// collectives/tensor_content.h if the job says how sparse its tensors are) sums up exactly, so one
// wrong bit is one wrong element, whatever the order of the additions. rank_data.h decides when
// each part of a rank's buffers is filled or compared.
//
// Units: elements. Threading: free functions on the caller's buffers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/schedule.h"
#include "collectives/tensor_content.h"
#include "emulator/verify/call_content.h"
#include "emulator/verify/values.h"
#include "profiles/workload/program.h"

namespace ghostrank {

// One rank in one call of a collective. `salt` varies the data from call to call.
struct RankCall {
  const Collective& collective;
  DataType type;
  GroupRank rank;
  std::uint64_t salt;
  bool out_of_place;  // the input holds what an in-place call finds in the work buffer
  const TensorContent* content = nullptr;  // of the reduced data; null: verify/values.h draws it
  const CompressedContent* compressed = nullptr;  // not null: its payloads (verify/compressed.h)
  // By how much a float element may be off before it is rounded to its type; 0: exact.
  double bound = 0;
  TensorResult* expected = nullptr;  // not null: promised in place of a sum (verify/expected.h)
};

// Elements [first, first + count) of a buffer.
struct Range {
  std::uint64_t first = 0, count = 0;
};

// Fill the buffers with what the collective expects before its first step. Parts that the
// collective must fill itself are poisoned; out of place, that is the whole work buffer. Call
// fill_input() first, because the work buffer may take data from the input. Without an input,
// fill_input() does nothing.
void fill_input(const RankCall& call, std::byte* input);
void fill_work(const RankCall& call, Range range, const std::byte* input, std::byte* work);

// Compares a part of the work buffer with what the collective promises: how many of its elements
// are promised, and how many of those are wrong.
struct Checked {
  std::uint64_t elements = 0, wrong = 0;
};
Checked check_work(const RankCall& call, Range range, const std::byte* work);
std::uint64_t promised_elements(const RankCall& call, Range range);

// The rank's contribution to a call that reduces, and the sums that it promises: of elements in one
// tile (verify/values.h).
void contributed(const RankCall& call, std::uint64_t index, std::uint64_t count, Value* out);
void promised_sums(const RankCall& call, std::uint64_t index, std::uint64_t count, Value* out);

}  // namespace ghostrank
