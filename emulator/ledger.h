// Counts every message that crosses NICs of different emulated nodes by (source NIC, target NIC,
// row), where a row is a (collective, group, algorithm). Bounded: beyond `limit` distinct keys the
// counts so far are appended to a CSV (partial sums; add the rows up) and the table starts afresh.
//
// Threading: one ledger per shard; merged between segments.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

namespace ghostrank {

struct LedgerKey {
  std::int32_t source_nic = 0, target_nic = 0;
  std::uint16_t row = 0;
  bool operator==(const LedgerKey&) const = default;
};

struct LedgerCell {
  std::uint64_t bytes = 0, messages = 0;
};

class Ledger {
 public:
  explicit Ledger(std::size_t limit = 1'000'000, std::string spill_path = "")
      : limit_(limit), spill_path_(std::move(spill_path)) {}

  // The cell of a key; valid while generation() stays the same.
  LedgerCell& cell(const LedgerKey& key);
  std::uint32_t generation() const { return generation_; }

  void add_intra(std::uint64_t bytes) {
    intra_.bytes += bytes;
    ++intra_.messages;
  }
  void add(const LedgerKey& key, const LedgerCell& count);
  void add_intra(const LedgerCell& count) {
    intra_.bytes += count.bytes;
    intra_.messages += count.messages;
  }

  struct Hash {
    std::size_t operator()(const LedgerKey& k) const {
      std::uint64_t h = static_cast<std::uint64_t>(static_cast<std::uint32_t>(k.source_nic)) << 32 |
                        static_cast<std::uint32_t>(k.target_nic);
      h = (h ^ static_cast<std::uint64_t>(k.row) << 17) * 0x9e3779b97f4a7c15ULL;
      return h ^ (h >> 31);
    }
  };
  const std::unordered_map<LedgerKey, LedgerCell, Hash>& cells() const { return cells_; }
  const LedgerCell& intra() const { return intra_; }
  bool spilled() const { return spilled_; }
  const std::string& spill_path() const { return spill_path_; }
  void clear();  // between segments; a spill file stays

 private:
  void spill();

  std::size_t limit_;
  std::string spill_path_;
  bool spilled_ = false;
  std::uint32_t generation_ = 1;
  std::unordered_map<LedgerKey, LedgerCell, Hash> cells_;
  LedgerCell intra_;
};

}  // namespace ghostrank
