// What ranks hold in a call that the agent checker plays, and what they must hold after it: the
// contract (contract.h) with numbers for its symbols.
//
// Values are whole numbers that seed, call, rank and element decide, never 0: a missing, doubled or
// misplaced one shows. Whole types wrap around; those of floats are so small that sums over the
// group are exact, and what a scheme rounds may differ by what it states (Ends::error_bound()) and
// by a rounding of the type. Elements without a defined value have all bits set.
// What a sparse call sums up is as tensor_content.h says, zeros and all.
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

// What ranks hold in a call that sums up sparse tensors; empty: it does not.
std::optional<TensorContent> content_of(const Call& call, std::uint64_t seed);

class CallValues {
 public:
  CallValues(const Call& call, std::uint64_t seed, const Ends& ends);

  std::vector<std::byte> work(Rank r) const;
  std::vector<std::byte> input(Rank r) const;
  // What is wrong with the work buffer of a rank that says done; empty: nothing.
  std::string wrong(Rank r, std::span<const std::byte> work) const;

 private:
  std::uint64_t value(Rank r, std::uint64_t element) const;
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
  std::vector<std::uint32_t> set_of_;             // by rank: the multiset of it alone
  std::unordered_map<std::uint32_t, Rank> only_;  // the other way around
};

// Empty, or why sums over so many ranks would not be exact.
std::string too_many_ranks(const Call& call);

}  // namespace ghostrank::checking
