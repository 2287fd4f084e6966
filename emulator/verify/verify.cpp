#include "emulator/verify/verify.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "collectives/layout.h"
#include "emulator/verify/compressed.h"
#include "emulator/verify/elements.h"
#include "emulator/verify/expected.h"
#include "emulator/verify/values.h"

namespace ghostrank {
namespace {

// Writes values as elements; values(index, count, out) gives the values of a tile.
template <typename Values>
void write(const RankCall& call, Range range, std::byte* buffer, const Values& values) {
  ValueTile tile;
  for_each_tile(range.first, range.count, [&](std::uint64_t index, std::uint64_t n) {
    values(index, n, tile.data());
    put_values(call.type, buffer + index * call.collective.element_bytes, tile.data(), n);
  });
}

void poison(const RankCall& call, Range range, std::byte* buffer) {
  put_value(call.type, buffer + range.first * call.collective.element_bytes, kPoisonValue,
            range.count);
}

Range overlap(Range range, const Block& block) {
  const std::uint64_t first = std::max(range.first, block.offset);
  const std::uint64_t end = std::min(range.first + range.count, block.offset + block.count);
  return {first, end > first ? end - first : 0};
}

// The number of elements in the range that differ from the values from `index` on.
template <typename Values>
std::uint64_t count_wrong(const RankCall& call, Range range, std::uint64_t index,
                          const std::byte* buffer, const Values& values) {
  std::uint64_t wrong = 0;
  ValueTile tile;
  const std::byte* elements = buffer + range.first * call.collective.element_bytes;
  for_each_tile(index, range.count, [&](std::uint64_t at, std::uint64_t n) {
    values(at, n, tile.data());
    wrong += count_unequal(call.type, elements, tile.data(), n);
    elements += n * call.collective.element_bytes;
  });
  return wrong;
}

// The value of an element of a floating-point type.
double float_at(DataType type, const std::byte* element) {
  if (type == DataType::bfloat16) {
    Bf16 half;
    std::memcpy(&half, element, sizeof half);
    return half.value();
  }
  if (type == DataType::float16) {
    Half half;
    std::memcpy(&half, element, sizeof half);
    return half.value();
  }
  float value;
  std::memcpy(&value, element, sizeof value);
  return value;
}

// As count_wrong(), but an element may be off by the call's bound plus one rounding of its type.
template <typename Values>
std::uint64_t count_far(const RankCall& call, Range range, std::uint64_t index,
                        const std::byte* buffer, const Values& values) {
  const double rounding = call.type == DataType::bfloat16  ? 0x1p-8
                          : call.type == DataType::float16 ? 0x1p-11
                                                           : 0x1p-23;
  std::uint64_t near = 0;
  ValueTile tile;
  const std::byte* element = buffer + range.first * call.collective.element_bytes;
  for_each_tile(index, range.count, [&](std::uint64_t at, std::uint64_t n) {
    values(at, n, tile.data());
    for (std::uint64_t i = 0; i < n; ++i, element += call.collective.element_bytes) {
      const double right = tile[i];
      const double off = std::abs(float_at(call.type, element) - right);
      near += off <= call.bound + std::abs(right) * rounding;  // false for NaN
    }
  });
  return range.count - near;
}

// The values of one rank of a call, in the form that write() and count_wrong() take.
auto own_of(const RankCall& call, GroupRank rank) {
  return [rank, size = call.collective.size, salt = call.salt](std::uint64_t index,
                                                               std::uint64_t count, Value* out) {
    own_values(rank, size, salt, index, count, out);
  };
}

bool exchanges(const Collective& c) {
  return c.func == Func::all_to_all || c.func == Func::all_to_all_v;
}

// Fills the work buffer as it is before the first step, in place. Leaves out an all-to-all's own
// block, which comes from the input.
void fill(const RankCall& call, Range range, std::byte* work) {
  const Collective& c = call.collective;
  const GroupRank rank = call.rank;
  if (call.compressed) return fill_compressed(call, work);
  switch (c.func) {
    case Func::all_reduce:
    case Func::reduce:
    case Func::reduce_scatter:
      return write(call, range, work, [&](std::uint64_t index, std::uint64_t count, Value* out) {
        contributed(call, index, count, out);
      });
    case Func::broadcast:
    case Func::send_recv:
    case Func::scatter:
      if (rank == c.root) return write(call, range, work, own_of(call, rank));
      return poison(call, range, work);
    case Func::all_gather:
    case Func::all_gather_v:
    case Func::gather:
      poison(call, range, work);
      return write(call, overlap(range, Layout(c).work(rank, rank)), work, own_of(call, rank));
    case Func::all_to_all:
    case Func::all_to_all_v:
      return poison(call, range, work);
    case Func::barrier:
      return;
  }
}

// Visits what the collective promises of a part of the work buffer: visit(range, index, values)
// says that the range holds the values from `index` on.
template <typename Visit>
void for_each_promise(const RankCall& call, Range range, const Visit& visit) {
  const Collective& c = call.collective;
  if (range.count == 0) return;
  const auto part = [&](const Block& block, std::uint64_t index, auto values) {
    const Range there = overlap(range, block);
    if (there.count > 0) visit(there, index + (there.first - block.offset), values);
  };
  const auto sum = [&call](std::uint64_t index, std::uint64_t count, Value* out) {
    promised_sums(call, index, count, out);
  };
  const auto every_block = [&] {
    const Layout layout(c);
    const std::uint64_t end = range.first + range.count;
    for (GroupRank owner = layout.block_at(call.rank, range.first); owner < c.size; ++owner) {
      const Block to = layout.work(call.rank, owner);
      if (to.offset >= end) return;
      part(to, exchanges(c) ? layout.input(owner, call.rank).offset : to.offset,
           own_of(call, owner));
    }
  };
  const Block first{0, c.count}, mine{static_cast<std::uint64_t>(call.rank) * c.count, c.count};
  switch (c.func) {
    case Func::all_reduce:
      return part(first, 0, sum);
    case Func::reduce:
      if (call.rank == c.root) part(first, 0, sum);
      return;
    case Func::reduce_scatter:
      return part(mine, mine.offset, sum);
    case Func::broadcast:
    case Func::send_recv:
      return part(first, 0, own_of(call, c.root));
    case Func::scatter:
      return part(mine, mine.offset, own_of(call, c.root));
    case Func::gather:
      if (call.rank == c.root) every_block();
      return;
    case Func::all_gather:
    case Func::all_to_all:
    case Func::all_gather_v:
    case Func::all_to_all_v:
      return every_block();
    case Func::barrier:
      return;
  }
}

}  // namespace

void contributed(const RankCall& call, std::uint64_t index, std::uint64_t count, Value* out) {
  if (call.content)
    call.content->values(call.rank, index, count, out);
  else
    contributed_values(call.rank, call.collective.size, call.salt, index, count, out);
}

void promised_sums(const RankCall& call, std::uint64_t index, std::uint64_t count, Value* out) {
  if (call.content)
    call.content->sums(index, count, out);
  else
    sum_values(call.salt, index, count, out);
}

void fill_input(const RankCall& call, std::byte* input) {
  const std::uint64_t own = input_elements(call.collective, call.rank);
  if (own > 0 && call.compressed) return fill_compressed_input(call, input);
  if (own > 0) return write(call, {0, own}, input, own_of(call, call.rank));
  if (call.out_of_place) fill(call, {0, work_elements(call.collective, call.rank)}, input);
}

void fill_work(const RankCall& call, Range range, const std::byte* input, std::byte* work) {
  const Collective& c = call.collective;
  if (call.out_of_place) return poison(call, range, work);
  fill(call, range, work);
  if (!exchanges(c)) return;
  const Layout layout(c);  // the own block is never sent
  const Block from = layout.input(call.rank, call.rank), to = layout.work(call.rank, call.rank);
  const Range own = overlap(range, to);
  if (own.count == 0) return;
  std::memcpy(work + own.first * c.element_bytes,
              input + (from.offset + own.first - to.offset) * c.element_bytes,
              own.count * c.element_bytes);
}

Checked check_work(const RankCall& call, Range range, const std::byte* work) {
  if (call.expected) return check_expected(call, range, work);
  if (call.compressed) return check_compressed(call, work);
  Checked checked;
  for_each_promise(call, range, [&](Range there, std::uint64_t index, const auto& values) {
    checked.elements += there.count;
    checked.wrong += call.bound > 0 ? count_far(call, there, index, work, values)
                                    : count_wrong(call, there, index, work, values);
  });
  return checked;
}

std::uint64_t promised_elements(const RankCall& call, Range range) {
  std::uint64_t elements = 0;
  for_each_promise(call, range,
                   [&](Range there, std::uint64_t, const auto&) { elements += there.count; });
  return elements;
}

}  // namespace ghostrank
