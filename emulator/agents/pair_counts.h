// Notes counted by sender and receiver, until they go to the ledger. An agent's counts lie
// together, so those of a thousand ranks that all talk to a hundred servers are found without a
// hash. Counts are gathered, 16 at a time, so that their cells are prefetched together.
//
//   row of an agent:   receivers 0..63 | - | 128..191 | ...      blocks, made when first needed
//
// Bound: kMostBlocks blocks of 1 KiB, and one for each count that is gathered; add() then returns
// false, and the owner hands all counts over. Threading: one owner.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/schedule.h"
#include "emulator/common/block_store.h"
#include "emulator/traffic/ledger.h"

namespace ghostrank {

class PairCounts {
 public:
  static constexpr std::size_t kMostBlocks = 1 << 15;

  // Returns the number of a new row, without counts.
  std::uint32_t new_row() {
    rows_.emplace_back();
    return static_cast<std::uint32_t>(rows_.size()) - 1;
  }
  // Counts a note. False: there is no room; call take_all(), then this again.
  bool add(std::uint32_t row, GroupParty receiver, std::uint64_t bytes) {
    if (gathered_count_ == gathered_.size()) {
      enter();
      if (blocks_ >= kMostBlocks) return false;
    }
    gathered_[gathered_count_++] = {row, receiver, bytes};
    return true;
  }
  // Calls take(row, receiver, count) for every pair that has counts, and forgets them.
  template <typename Take>
  void take_all(const Take& take) {
    enter();
    for (std::uint32_t row = 0; row < rows_.size(); ++row) {
      for (std::size_t b = 0; b < rows_[row].size(); ++b) {
        if (rows_[row][b] == nullptr) continue;
        for (std::size_t i = 0; i < kBlock; ++i)
          if (const LedgerCell& count = (*rows_[row][b])[i]; count.messages > 0)
            take(row, static_cast<GroupParty>(b * kBlock + i), count);
        store_.give_back(rows_[row][b]);
      }
      rows_[row].clear();
    }
    blocks_ = 0;
  }
  // Forgets the rows, too.
  void clear() { *this = {}; }

 private:
  static constexpr std::size_t kBlock = 64, kGathered = 16;
  using Block = std::array<LedgerCell, kBlock>;
  using Row = std::vector<Block*>;  // null: without counts

  struct Gathered {
    std::uint32_t row;
    GroupParty receiver;
    std::uint64_t bytes;
  };

  [[gnu::noinline]] void enter() {
    std::array<LedgerCell*, kGathered> cells;
    for (std::size_t i = 0; i < gathered_count_; ++i) {
      cells[i] = &cell_of(gathered_[i].row, static_cast<std::size_t>(gathered_[i].receiver));
      __builtin_prefetch(cells[i], 1);
    }
    for (std::size_t i = 0; i < gathered_count_; ++i) *cells[i] += {gathered_[i].bytes, 1};
    gathered_count_ = 0;
  }
  LedgerCell& cell_of(std::uint32_t number, std::size_t index) {
    Row& row = rows_[number];
    if (index / kBlock >= row.size()) [[unlikely]]
      row.resize(index / kBlock + 1);
    Block*& block = row[index / kBlock];
    if (block == nullptr) [[unlikely]] {
      ++blocks_;
      block = store_.take();
      block->fill({});
    }
    return (*block)[index % kBlock];
  }

  std::vector<Row> rows_;
  BlockStore<Block> store_;
  std::size_t blocks_ = 0;                    // of all rows
  std::array<Gathered, kGathered> gathered_;  // not in their cells yet
  std::size_t gathered_count_ = 0;
};

}  // namespace ghostrank
