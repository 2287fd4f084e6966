#include "emulator/ledger.h"

#include <cstdio>

#include "emulator/assert.h"

namespace ghostrank {

LedgerCell& Ledger::cell(const LedgerKey& key) {
  const auto found = cells_.find(key);
  if (found != cells_.end()) return found->second;
  if (cells_.size() >= limit_) spill();
  return cells_[key];
}

void Ledger::add(const LedgerKey& key, const LedgerCell& count) {
  LedgerCell& c = cell(key);
  c.bytes += count.bytes;
  c.messages += count.messages;
}

void Ledger::clear() {
  cells_.clear();
  intra_ = {};
  ++generation_;
}

void Ledger::spill() {
  std::FILE* file = std::fopen(spill_path_.c_str(), spilled_ ? "a" : "w");
  GHOSTRANK_ASSERT(file != nullptr);  // the path was checked before the run
  if (!spilled_) std::fputs("source_nic,target_nic,row,bytes,messages\n", file);
  for (const auto& [key, count] : cells_) {
    std::fprintf(file, "%d,%d,%u,%llu,%llu\n", key.source_nic, key.target_nic, key.row,
                 static_cast<unsigned long long>(count.bytes),
                 static_cast<unsigned long long>(count.messages));
  }
  std::fclose(file);
  spilled_ = true;
  cells_.clear();
  ++generation_;
}

}  // namespace ghostrank
