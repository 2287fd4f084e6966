// Durations of calls: all while they are few, then a fair sample, so that a row of the report needs
// the same memory for a million calls as for a few thousand. A hash of the call's name decides
// whether a call is kept, so the same run keeps the same calls, however many shards play it.
// Keeping one in every n would be unfair, because the calls of many groups come in turns.
//
// Bound: kMost values. Units: seconds. Threading: one owner; a plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ghostrank {

class SampledSeconds {
 public:
  static constexpr std::size_t kMost = 4096;

  // `call`: the call's own number. `kind`: equal for calls that steps repeat, as of one bucket.
  void add(double seconds, std::uint64_t call, std::uint32_t kind = 0);
  void merge(const SampledSeconds& other);

  // Each value stands for 2^halvings() calls.
  const std::vector<float>& values() const { return values_; }
  std::uint32_t halvings() const { return halvings_; }

  // The 95 % interval of the median, least and most, by drawing anew from the calls kept of each
  // kind (a stratified bootstrap). Wide where calls of one kind have several typical durations, by
  // their order at a NIC, and the median lies between two of these. {0, 0} without values; does
  // not depend on the order in which calls came.
  std::pair<double, double> median_interval() const;

  // Half of the interquartile range of the kind of calls that the median lies in; of several such
  // kinds, the widest. The median is known no better than this where the order at a NIC alternates
  // between iterations, because such calls are not independent, as median_interval() assumes.
  double spread_at_median() const;

  // Whether add() and merge() could have produced this; check it after reading a blob.
  bool valid() const {
    return values_.size() <= kMost && tosses_.size() == values_.size() &&
           kinds_.size() == values_.size() && halvings_ <= kTosses;
  }
  // Visits every field, to write it to a blob or to read it: field(x).
  template <typename Self, typename Field>
  static void exchange(Self& self, Field&& field) {
    field(self.values_), field(self.tosses_), field(self.kinds_), field(self.halvings_);
  }

 private:
  static constexpr std::uint32_t kTosses = 32;
  bool keeps(std::uint32_t tosses) const {
    return (tosses & ((std::uint64_t{1} << halvings_) - 1)) == 0;
  }
  void keep(float seconds, std::uint32_t tosses, std::uint32_t kind);
  void halve();
  std::vector<std::vector<double>> by_kind() const;  // values in rising order

  std::vector<float> values_;
  std::vector<std::uint32_t>
      tosses_;  // 32 coin tosses of each call kept; the lowest halvings_ bits are 0
  std::vector<std::uint32_t> kinds_;
  std::uint32_t halvings_ = 0;
};

}  // namespace ghostrank
