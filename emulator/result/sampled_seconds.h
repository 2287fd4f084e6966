// Durations of calls: all while they are few, then a fair sample, so that a row of the report needs
// the same memory for a million calls as for a few thousand. A hash of the call's number decides
// whether a call is kept, so the same run keeps the same calls. Keeping one in every n would be
// unfair, because the calls of many groups come in turns.
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

  // Each value stands for 2^halvings() calls.
  const std::vector<float>& values() const { return values_; }
  std::uint32_t halvings() const { return halvings_; }

  // Whether add() and merge() could have produced this; check it after reading a blob.
  bool valid() const { return values_.size() <= kMost && halvings_ < 64; }
  // Visits every field, to write it to a blob or to read it: field(x).
  template <typename Self, typename Field>
  static void exchange(Self& self, Field&& field) {
    field(self.values_), field(self.halvings_), field(self.calls_);
  }

 private:
  void halve();

  std::vector<float> values_;
  std::uint32_t halvings_ = 0;
  std::uint64_t calls_ = 0;  // offered to add()
};

}  // namespace ghostrank
