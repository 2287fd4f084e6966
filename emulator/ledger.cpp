#include "emulator/ledger.h"

#include <algorithm>
#include <cstdio>

#include "emulator/assert.h"

namespace ghostrank {
namespace {

constexpr std::size_t kSmallest = 16;

std::size_t hash(const LedgerKey& k) {
  std::uint64_t h = static_cast<std::uint64_t>(static_cast<std::uint32_t>(k.source_nic)) << 32 |
                    static_cast<std::uint32_t>(k.target_nic);
  h = (h ^ static_cast<std::uint64_t>(k.row) << 17) * 0x9e3779b97f4a7c15ULL;
  return h ^ (h >> 31);
}

}  // namespace

// What was gathered goes to the table.
void Ledger::enter() {
  while (4 * (used_ + gathered_count_) > 3 * table_.size()) grow();
  for (std::size_t i = 0; i < gathered_count_; ++i)
    __builtin_prefetch(&table_[hash(gathered_[i].key) & (table_.size() - 1)]);
  for (std::size_t i = 0; i < gathered_count_; ++i) {
    const auto& [key, count] = gathered_[i];
    if (count.messages == 0) continue;
    LedgerRow* row = &place_of(key);
    if (row->count.messages == 0) {
      if (used_ >= limit_) {
        spill();
        row = &place_of(key);
      }
      ++used_;
      row->key = key;
    }
    row->count.bytes += count.bytes;
    row->count.messages += count.messages;
  }
  gathered_count_ = 0;
}

// Where the key is, or is to be.
LedgerRow& Ledger::place_of(const LedgerKey& key) {
  const std::size_t mask = table_.size() - 1;
  std::size_t i = hash(key) & mask;
  while (table_[i].count.messages > 0 && table_[i].key != key) i = (i + 1) & mask;
  return table_[i];
}

void Ledger::grow() {
  const std::vector<LedgerRow> old =
      std::exchange(table_, std::vector<LedgerRow>(std::max(kSmallest, 2 * table_.size())));
  for (const LedgerRow& row : old)
    if (row.count.messages > 0) place_of(row.key) = row;
}

std::vector<LedgerRow> Ledger::rows() {
  enter();
  return used_rows();
}

std::vector<LedgerRow> Ledger::used_rows() const {
  std::vector<LedgerRow> used;
  used.reserve(used_);
  for (const LedgerRow& row : table_)
    if (row.count.messages > 0) used.push_back(row);
  return used;
}

void Ledger::clear() {
  std::fill(table_.begin(), table_.end(), LedgerRow{});
  used_ = gathered_count_ = 0;
  intra_ = {};
}

void Ledger::spill() {
  std::FILE* file = std::fopen(spill_path_.c_str(), spilled_ ? "a" : "w");
  GHOSTRANK_ASSERT(file != nullptr);  // the path was checked before the run
  if (!spilled_) std::fputs("source_nic,target_nic,row,bytes,messages\n", file);
  for (const auto& [key, count] : used_rows()) {
    std::fprintf(file, "%d,%d,%u,%llu,%llu\n", key.source_nic, key.target_nic, key.row,
                 static_cast<unsigned long long>(count.bytes),
                 static_cast<unsigned long long>(count.messages));
  }
  std::fclose(file);
  spilled_ = true;
  std::fill(table_.begin(), table_.end(), LedgerRow{});
  used_ = 0;
}

}  // namespace ghostrank
