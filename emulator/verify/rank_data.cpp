#include "emulator/verify/rank_data.h"

#include <algorithm>
#include <cstring>

#include "emulator/verify/compressed.h"
#include "emulator/verify/elements.h"

namespace ghostrank {
namespace {

constexpr std::uint64_t kGlance = 64;  // elements that is_right() compares first

constexpr std::size_t index_of(Buffer buffer) { return static_cast<std::size_t>(buffer); }

}  // namespace

RankData::RankData(const Schedule& schedule, DataType type, GroupRank rank, std::uint64_t salt,
                   SpareBuffers& spare, const CallContent& content, double bound)
    : content_(content),
      call_{schedule.collective(),
            type,
            rank,
            salt,
            schedule.out_of_place(),
            content_.tensor ? &*content_.tensor : nullptr,
            content_.compressed ? &*content_.compressed : nullptr,
            bound,
            content_.expected},
      spare_(spare),
      elements_(work_elements(call_.collective, rank)),
      by_tiles_(!is_ragged(call_.collective.func) && !content_.compressed),
      tiles_((elements_ + kTileElements - 1) / kTileElements) {
  bytes_[index_of(Buffer::work)] = elements_;
  bytes_[index_of(Buffer::input)] = input_elements(schedule, rank);
  bytes_[index_of(Buffer::scratch)] = schedule.scratch_elements(rank);
  for (std::size_t b = 0; b < buffers_.size(); ++b) {
    bytes_[b] *= call_.collective.element_bytes;
    buffers_[b] = spare.take(bytes_[b]);
  }
  fill_input(call_, buffers_[index_of(Buffer::input)].get());
  if (by_tiles_) return;
  fill_work(call_, {0, elements_}, buffers_[index_of(Buffer::input)].get(),
            buffers_[index_of(Buffer::work)].get());
  std::fill(tiles_.begin(), tiles_.end(), State::made);
}

RankData::~RankData() {
  for (std::size_t b = 0; b < buffers_.size(); ++b) spare_.give(bytes_[b], std::move(buffers_[b]));
}

void RankData::read(const Block& from, std::byte* to) {
  const std::uint32_t element = call_.collective.element_bytes;
  const std::byte* data = at(from);
  if (from.buffer != Buffer::work) {
    std::memcpy(to, data, from.count * element);
    return;
  }
  for_each_tile(from.offset, from.count, [&](std::uint64_t index, std::uint64_t n) {
    make(tile_at(index));
    std::memcpy(to, data, n * element);
    to += n * element;
    data += n * element;
  });
}

void RankData::write(const Block& to, const std::byte* from, Combine how) {
  std::byte* data = at(to);
  if (to.buffer != Buffer::work) return combine(data, from, to.count, how);
  const std::uint32_t element = call_.collective.element_bytes;
  for_each_tile(to.offset, to.count, [&](std::uint64_t index, std::uint64_t n) {
    const Range tile = tile_at(index);
    if (how == Combine::reduce || n < tile.count) make(tile);
    combine(data, from, n, how);
    const bool ended = by_tiles_ && index + n == tile.first + tile.count;
    tiles_[index / kTileElements] = ended && is_right(tile) ? State::right : State::made;
    from += n * element;
    data += n * element;
  });
}

void RankData::apply(const Local& local) {
  if (local.from.buffer == Buffer::work)
    for_each_tile(local.from.offset, local.from.count,
                  [&](std::uint64_t index, std::uint64_t) { make(tile_at(index)); });
  write(local.to, at(local.from), local.combine);
}

Checked RankData::check() {
  const std::byte* work = buffers_[index_of(Buffer::work)].get();
  if (!by_tiles_) {
    const Checked checked = check_work(call_, {0, elements_}, work);
    if (call_.compressed) finish_compressed(call_, work);
    return checked;
  }
  Checked all;
  for_each_tile(0, elements_, [&](std::uint64_t index, std::uint64_t n) {
    const Range tile{index, n};
    if (tiles_[index / kTileElements] == State::right) {
      all.elements += promised_elements(call_, tile);
      return;
    }
    make(tile);
    const Checked checked = check_work(call_, tile, work);
    all.elements += checked.elements;
    all.wrong += checked.wrong;
  });
  return all;
}

std::byte* RankData::at(const Block& block) const {
  return buffers_[index_of(block.buffer)].get() + block.offset * call_.collective.element_bytes;
}

// Returns the tile of the work buffer that holds the element; the last tile may be shorter.
Range RankData::tile_at(std::uint64_t element) const {
  const std::uint64_t first = element - element % kTileElements;
  return {first, std::min(kTileElements, elements_ - first)};
}

void RankData::make(Range tile) {
  State& state = tiles_[tile.first / kTileElements];
  if (state != State::unmade) return;
  state = State::made;
  fill_work(call_, tile, buffers_[index_of(Buffer::input)].get(),
            buffers_[index_of(Buffer::work)].get());
}

// Compares a few elements first: in a tile that is not complete yet, they nearly always differ.
bool RankData::is_right(Range tile) const {
  const std::byte* work = buffers_[index_of(Buffer::work)].get();
  const Range glance{tile.first, std::min(kGlance, tile.count)};
  const Range rest{tile.first + glance.count, tile.count - glance.count};
  return check_work(call_, glance, work).wrong == 0 && check_work(call_, rest, work).wrong == 0;
}

void RankData::combine(std::byte* into, const std::byte* from, std::uint64_t count,
                       Combine how) const {
  if (how == Combine::reduce) return add_elements(call_.type, into, from, count);
  std::memcpy(into, from, count * call_.collective.element_bytes);
}

}  // namespace ghostrank
