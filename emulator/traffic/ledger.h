// Counts every message that crosses NICs of different emulated nodes by (source NIC, target NIC,
// row); a row is a (collective, group, algorithm). Bounded: beyond `limit` distinct keys the ledger
// appends its counts to a CSV file and starts afresh, so a file holds partial sums (add equal keys
// up). The sums per NIC stay in memory, so totals need no file.
//
// An open-addressed hash table, at most three quarters full, so that a count costs one memory
// access. At 10,000 ranks the table exceeds the cache: counts are gathered, and 16 at a time are
// prefetched together.
//
// Units: bytes, messages. Threading: one ledger per shard; merged between segments.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "collectives/common/number.h"

namespace ghostrank {

struct LedgerKey {
  Nic source_nic, target_nic;
  std::uint16_t row = 0;
  bool operator==(const LedgerKey&) const = default;
};

struct LedgerCell {
  std::uint64_t bytes = 0, messages = 0;
  LedgerCell& operator+=(const LedgerCell& other) {
    bytes += other.bytes;
    messages += other.messages;
    return *this;
  }
};

struct LedgerRow {
  LedgerKey key;
  LedgerCell count;
};

// Traffic of one NIC.
struct NicCount {
  LedgerCell sent, received;
};

// Adds the row to both of its NICs; `nics` grows as needed.
inline void count_at_nics(const LedgerRow& row, VectorBy<Nic, NicCount>& nics) {
  const int last = std::max(row.key.source_nic, row.key.target_nic).value();
  if (nics.size() <= last) nics.resize(last + 1);
  nics[row.key.source_nic].sent += row.count;
  nics[row.key.target_nic].received += row.count;
}

class Ledger {
 public:
  explicit Ledger(std::size_t limit = 1'000'000, std::string spill_path = "")
      : limit_(limit), spill_path_(std::move(spill_path)) {}

  // Throws Error(environment) the first time that the spill file cannot be written. Counting goes
  // on, but the counts meant for the file are then known per NIC only.
  void add(const LedgerKey& key, const LedgerCell& count) {
    gathered_[gathered_count_++] = {key, count};
    if (gathered_count_ == gathered_.size()) enter_and_tell();
  }
  // Messages inside nodes, of a row.
  void add_intra(std::uint16_t row, const LedgerCell& count) {
    if (row >= intra_.size()) intra_.resize(row + std::size_t{1});
    intra_[row] += count;
  }

  std::vector<LedgerRow> rows();                                   // rows not spilled, in no order
  const std::vector<LedgerCell>& intra() const { return intra_; }  // by row; missing: none
  bool spilled() const { return spilled_; }
  // Sums of the rows that rows() lacks.
  const VectorBy<Nic, NicCount>& spilled_by_nic() const { return spilled_by_nic_; }
  const std::string& spill_path() const { return spill_path_; }
  // Spills the rest too, so that the file has every row.
  void spill_rest();
  // Why the file could not be written, and what to do; empty: it was written.
  const std::string& failure() const { return failure_; }
  void clear();  // between segments; the next spill overwrites the file

 private:
  void enter();
  void enter_and_tell();
  LedgerRow& find_slot(const LedgerKey& key);
  std::vector<LedgerRow> used_rows() const;
  void grow();
  void spill();
  void write(const std::vector<LedgerRow>& rows);

  std::size_t limit_;
  std::string spill_path_;
  bool spilled_ = false, told_ = false;
  std::string failure_;
  VectorBy<Nic, NicCount> spilled_by_nic_;
  std::size_t used_ = 0;
  std::vector<LedgerRow> table_;  // a power of two; a free row has no messages
  std::vector<LedgerCell> intra_;
  std::array<LedgerRow, 16> gathered_;  // not in the table yet
  std::size_t gathered_count_ = 0;
};

}  // namespace ghostrank
