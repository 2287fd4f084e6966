// Counts every message that crosses NICs of different emulated nodes by (source NIC, target NIC,
// row), where a row is a (collective, group, algorithm). Bounded: beyond `limit` distinct keys the
// counts so far are appended to a CSV (partial sums; add the rows up) and the table starts afresh.
//
// A flat table, at most three quarters full: a count is found with one look at memory. Of 10,000
// ranks it is more than the cache holds, so counts are gathered, and some are looked for together.
//
// Threading: one ledger per shard; merged between segments.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ghostrank {

struct LedgerKey {
  std::int32_t source_nic = 0, target_nic = 0;
  std::uint16_t row = 0;
  bool operator==(const LedgerKey&) const = default;
};

struct LedgerCell {
  std::uint64_t bytes = 0, messages = 0;
};

struct LedgerRow {
  LedgerKey key;
  LedgerCell count;
};

class Ledger {
 public:
  explicit Ledger(std::size_t limit = 1'000'000, std::string spill_path = "")
      : limit_(limit), spill_path_(std::move(spill_path)) {}

  void add(const LedgerKey& key, const LedgerCell& count) {
    gathered_[gathered_count_++] = {key, count};
    if (gathered_count_ == gathered_.size()) enter();
  }
  void add_intra(const LedgerCell& count) {
    intra_.bytes += count.bytes;
    intra_.messages += count.messages;
  }

  std::vector<LedgerRow> rows();  // what was not spilled, in no order
  const LedgerCell& intra() const { return intra_; }
  bool spilled() const { return spilled_; }
  const std::string& spill_path() const { return spill_path_; }
  void clear();  // between segments; a spill file stays

 private:
  void enter();
  LedgerRow& place_of(const LedgerKey& key);
  std::vector<LedgerRow> used_rows() const;
  void grow();
  void spill();

  std::size_t limit_;
  std::string spill_path_;
  bool spilled_ = false;
  std::size_t used_ = 0;
  std::vector<LedgerRow> table_;  // a power of two; free: without messages
  LedgerCell intra_;
  std::array<LedgerRow, 16> gathered_;  // not in the table yet
  std::size_t gathered_count_ = 0;
};

}  // namespace ghostrank
