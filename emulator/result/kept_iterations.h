// The measured iterations of a run that may be longer than memory: all while they are few, then a
// fair sample. A hash of its number decides whether an iteration is kept, so what repeats every so
// many iterations is neither always kept nor never.
//
// Bound: kMost iterations. Threading: one owner; a plain value.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "emulator/result/result.h"

namespace ghostrank {

class KeptIterations {
 public:
  static constexpr std::size_t kMost = 100'000;

  // The next iteration; the first has number 0. Returns whether it is kept for now.
  bool add(const IterationReport& iteration);

  std::uint64_t count() const { return count_; }  // of all
  std::uint32_t one_in() const { return 1U << halvings_; }
  const std::vector<IterationReport>& iterations() const { return iterations_; }
  const std::vector<std::uint32_t>& numbers() const { return numbers_; }  // of those kept

 private:
  bool keeps(std::uint32_t number) const;
  void halve();

  std::uint64_t count_ = 0;
  std::uint32_t halvings_ = 0;
  std::vector<IterationReport> iterations_;
  std::vector<std::uint32_t> numbers_;
};

}  // namespace ghostrank
