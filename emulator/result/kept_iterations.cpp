#include "emulator/result/kept_iterations.h"

#include "emulator/common/random.h"

namespace ghostrank {

bool KeptIterations::keeps(std::uint32_t number) const {
  return (mix_bits(number) & (one_in() - 1)) == 0;
}

bool KeptIterations::add(const IterationReport& iteration) {
  const auto number = static_cast<std::uint32_t>(count_++);
  if (!keeps(number)) return false;
  iterations_.push_back(iteration);
  numbers_.push_back(number);
  while (iterations_.size() > kMost) halve();
  return keeps(number);
}

void KeptIterations::halve() {
  ++halvings_;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    if (!keeps(numbers_[i])) continue;
    iterations_[kept] = iterations_[i];
    numbers_[kept++] = numbers_[i];
  }
  iterations_.resize(kept);
  numbers_.resize(kept);
}

}  // namespace ghostrank
