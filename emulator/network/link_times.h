// How busy each link was in each part of a segment. There are at most kBins parts, whatever the
// segment's length: when time passes the last part, neighbours merge in pairs, twice as wide.
//
// Units: emulated picoseconds. Threading: one owner (a shard); merged between segments.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "profiles/units.h"

namespace ghostrank {

class LinkTimes {
 public:
  static constexpr int kBins = 256;

  LinkTimes() = default;  // of no links
  explicit LinkTimes(std::size_t links) : busy_(links) {}
  std::size_t links() const { return busy_.size(); }

  // The link is busy for `share` of the time between `from` and `until`.
  void add(std::size_t link, Picoseconds from, Picoseconds until, double share = 1) {
    if (until <= from) return;
    while (until > kBins * width_) widen();
    std::vector<float>& bins = busy_[link];
    if (bins.empty()) bins.resize(kBins);
    for (Picoseconds bin = from / width_; bin * width_ < until; ++bin) {
      const Picoseconds part = std::min(until, (bin + 1) * width_) - std::max(from, bin * width_);
      bins[static_cast<std::size_t>(bin)] += static_cast<float>(share * static_cast<double>(part));
    }
  }

  void merge(LinkTimes other) {
    if (busy_.size() < other.busy_.size()) busy_.resize(other.busy_.size());
    while (width_ < other.width_) widen();
    while (other.width_ < width_) other.widen();
    for (std::size_t link = 0; link < other.busy_.size(); ++link) {
      if (busy_[link].empty()) busy_[link].swap(other.busy_[link]);
      for (std::size_t bin = 0; bin < other.busy_[link].size(); ++bin)
        busy_[link][bin] += other.busy_[link][bin];
    }
  }

  // Adds `later`, whose time 0 is `at` here.
  void append(const LinkTimes& later, Picoseconds at) {
    if (busy_.size() < later.busy_.size()) busy_.resize(later.busy_.size());
    for (std::size_t link = 0; link < later.busy_.size(); ++link)
      for (std::size_t bin = 0; bin < later.busy_[link].size(); ++bin) {
        const Picoseconds from = at + static_cast<Picoseconds>(bin) * later.width_;
        add(link, from, from + later.width_,
            later.busy_[link][bin] / static_cast<double>(later.width_));
      }
  }

  Picoseconds width() const { return width_; }
  // Busy time of a link by bin; empty: it was never busy.
  const std::vector<float>& of(std::size_t link) const { return busy_[link]; }

 private:
  void widen() {
    width_ *= 2;
    for (std::vector<float>& bins : busy_) {
      if (bins.empty()) continue;
      for (std::size_t bin = 0; bin < kBins / 2; ++bin)
        bins[bin] = bins[2 * bin] + bins[2 * bin + 1];
      std::fill(bins.begin() + kBins / 2, bins.end(), 0.0f);
    }
  }

  Picoseconds width_ = 1024;
  std::vector<std::vector<float>> busy_;  // by link, then bin
};

}  // namespace ghostrank
