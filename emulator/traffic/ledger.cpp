#include "emulator/traffic/ledger.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "profiles/error.h"

namespace ghostrank {
namespace {

constexpr std::size_t kSmallest = 16;

std::size_t hash(const LedgerKey& k) {
  std::uint64_t h = std::uint64_t{k.source_nic.index()} << 32 | k.target_nic.index();
  h = (h ^ static_cast<std::uint64_t>(k.row) << 17) * 0x9e3779b97f4a7c15ULL;
  return h ^ (h >> 31);
}

}  // namespace

// Moves the gathered counts to the table.
void Ledger::enter() {
  while (4 * (used_ + gathered_count_) > 3 * table_.size()) grow();
  for (std::size_t i = 0; i < gathered_count_; ++i)
    __builtin_prefetch(&table_[hash(gathered_[i].key) & (table_.size() - 1)]);
  for (std::size_t i = 0; i < gathered_count_; ++i) {
    const auto& [key, count] = gathered_[i];
    if (count.messages == 0) continue;
    LedgerRow* row = &find_slot(key);
    if (row->count.messages == 0) {
      if (used_ >= limit_) {
        spill();
        row = &find_slot(key);
      }
      ++used_;
      row->key = key;
    }
    row->count += count;
  }
  gathered_count_ = 0;
}

// Throws only after everything is counted, so that the ledger can still be read and used.
void Ledger::enter_and_tell() {
  enter();
  if (!failure_.empty() && !std::exchange(told_, true))
    throw Error(failure_, ErrorKind::environment);
}

// The row of the key, or the free row where it belongs.
LedgerRow& Ledger::find_slot(const LedgerKey& key) {
  const std::size_t mask = table_.size() - 1;
  std::size_t i = hash(key) & mask;
  while (table_[i].count.messages > 0 && table_[i].key != key) i = (i + 1) & mask;
  return table_[i];
}

void Ledger::grow() {
  const std::vector<LedgerRow> old =
      std::exchange(table_, std::vector<LedgerRow>(std::max(kSmallest, 2 * table_.size())));
  for (const LedgerRow& row : old)
    if (row.count.messages > 0) find_slot(row.key) = row;
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
  spilled_by_nic_.clear();
  spilled_ = told_ = false;
  failure_.clear();
}

void Ledger::spill_rest() {
  enter();
  spill();
}

void Ledger::spill() {
  const std::vector<LedgerRow> rows = used_rows();
  for (const LedgerRow& row : rows) count_at_nics(row, spilled_by_nic_);
  if (failure_.empty()) write(rows);
  spilled_ = true;
  std::fill(table_.begin(), table_.end(), LedgerRow{});
  used_ = 0;
}

void Ledger::write(const std::vector<LedgerRow>& rows) {
  std::FILE* file = std::fopen(spill_path_.c_str(), spilled_ ? "a" : "w");
  bool written = file != nullptr;
  if (written && !spilled_)
    written = std::fputs("source_nic,target_nic,row,bytes,messages\n", file) >= 0;
  for (std::size_t i = 0; written && i < rows.size(); ++i) {
    const auto& [key, count] = rows[i];
    written =
        std::fprintf(file, "%d,%d,%u,%llu,%llu\n", key.source_nic.value(), key.target_nic.value(),
                     key.row, static_cast<unsigned long long>(count.bytes),
                     static_cast<unsigned long long>(count.messages)) > 0;
  }
  int error = errno;
  if (file != nullptr && std::fclose(file) != 0 && written) {
    error = errno;
    written = false;
  }
  if (written) return;
  failure_ = "cannot write the ledger, which outgrew memory, to " + spill_path_ + ": " +
             std::strerror(error) +
             "; make room for it and let it be written, or name the result file (--json) elsewhere";
}

}  // namespace ghostrank
