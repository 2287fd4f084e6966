// The content of the ranks' buffers in a call that the agent checker plays, before it and after it:
// the contract (contract.h) with numbers in place of symbols.
//
// Values are integers that depend on seed, call, rank and element. Dense values are never 0, so a
// missing, duplicated or misplaced one shows. Integer types wrap around; float values are so small
// that sums over the group are exact. The result of a scheme that rounds may differ by its stated
// bound (Ends::error_bound()) plus one rounding of the type. Elements without a defined value have
// all bits set. Sparse calls sum the content of tensor_content.h, zeros included. Calls whose
// result is no sum end with what Ends::expected() says, bit by bit.
//
// Units: elements, bytes. Threading: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "collectives/agent.h"
#include "collectives/check/contract.h"

namespace ghostrank::checking {

// The content of a call that sums sparse tensors; nullopt for other calls.
std::optional<TensorContent> content_of(const Call& call, std::uint64_t seed);

class CallValues {
 public:
  CallValues(const Call& call, std::uint64_t seed, const Ends& ends);

  // Takes the call's results from `tensor` in place of sums. Requires that the earlier calls of the
  // same tensor have done so before.
  void expect(Expected& tensor);

  std::vector<std::byte> work(GroupRank r) const;
  std::vector<std::byte> input(GroupRank r) const;
  // Returns what is wrong with the work buffer of a rank that reports done; empty: nothing.
  std::string wrong(GroupRank r, std::span<const std::byte> work) const;

 private:
  std::uint64_t value(GroupRank r, std::uint64_t element) const;
  std::uint64_t value(const Value& v) const;
  void put(const Value& v, std::byte* at) const;
  bool close(const std::byte* is, const std::byte* right) const;
  std::string shown(const std::byte* at) const;
  std::string guess(const Value& v, const std::byte* is) const;

  Call call_;
  std::uint64_t seed_;
  std::optional<TensorContent> content_;
  double bound_;
  Contributions contributions_;
  Contract contract_;
  std::uint32_t every_;
  std::vector<std::uint32_t> set_of_;                  // by rank: the multiset {rank}
  std::unordered_map<std::uint32_t, GroupRank> only_;  // the inverse of set_of_
  std::vector<float> expected_;                        // in place of sums; empty: sums
};

// Why sums over the call's ranks would not be exact; empty: they are.
std::string too_many_ranks(const Call& call);

}  // namespace ghostrank::checking
