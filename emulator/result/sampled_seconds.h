// How long calls took: each of them while they are few, then a fair share, so that a row of the
// report takes the same room for a million calls as for some thousands. Which calls are kept
// depends on their numbers alone: the same run keeps the same ones. Not one in so many, as calls of
// many groups come in turns: each by the toss of a coin.
//
// Bound: kMost values. Units: seconds. Threading: one owner; a plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ghostrank {

class SampledSeconds {
 public:
  static constexpr std::size_t kMost = 4096;

  void add(double seconds);
  void merge(const SampledSeconds& other);

  // Each stands for 2^halvings() calls.
  const std::vector<float>& values() const { return values_; }
  std::uint32_t halvings() const { return halvings_; }

  // Of what came from elsewhere: whether add() and merge() could have left it.
  bool valid() const { return values_.size() <= kMost && halvings_ < 64; }
  // For a blob, there and back: field(x) for every field.
  template <typename Self, typename Field>
  static void exchange(Self& self, Field&& field) {
    field(self.values_), field(self.halvings_), field(self.calls_);
  }

 private:
  void halve();

  std::vector<float> values_;
  std::uint32_t halvings_ = 0;
  std::uint64_t calls_ = 0;  // that were offered
};

}  // namespace ghostrank
