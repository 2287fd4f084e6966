#include "profiles/job/nic_rates.h"

#include <algorithm>

namespace ghostrank {

std::size_t RateCurve::index(Picoseconds at) const {
  const auto after =
      std::upper_bound(changes_.begin(), changes_.end(), at,
                       [](Picoseconds t, const Change& change) { return t < change.from; });
  return std::max<std::ptrdiff_t>(1, after - changes_.begin()) - 1;
}

Picoseconds RateCurve::duration(Picoseconds start, double bytes) const {
  double left = bytes;
  Picoseconds at = start;
  for (std::size_t i = index(start);; ++i) {
    const double takes = left * changes_[i].ps_per_byte;
    if (i + 1 == changes_.size() || takes <= static_cast<double>(changes_[i + 1].from - at))
      return at - start + picoseconds(takes);
    left -= static_cast<double>(changes_[i + 1].from - at) / changes_[i].ps_per_byte;
    at = changes_[i + 1].from;
  }
}

double RateCurve::bytes_between(Picoseconds begin, Picoseconds end) const {
  double bytes = 0;
  Picoseconds at = begin;
  for (std::size_t i = index(begin);; ++i) {
    const bool last = i + 1 == changes_.size() || end <= changes_[i + 1].from;
    const Picoseconds until = last ? end : changes_[i + 1].from;
    bytes += static_cast<double>(until - at) / changes_[i].ps_per_byte;
    if (last) return bytes;
    at = until;
  }
}

Picoseconds RateCurve::duration_until(Picoseconds end, double bytes) const {
  double left = bytes;
  Picoseconds at = end;
  for (std::size_t i = index(end);; --i) {
    const double takes = left * changes_[i].ps_per_byte;
    if (i == 0 || takes <= static_cast<double>(at - changes_[i].from))
      return end - at + picoseconds(takes);
    left -= static_cast<double>(at - changes_[i].from) / changes_[i].ps_per_byte;
    at = changes_[i].from;
  }
}

Picoseconds NicRates::next_change(Picoseconds after) const {
  Picoseconds next = kNever;
  for (const RateCurve& curve : curves_) {
    const auto& changes = curve.changes();
    const auto later = std::upper_bound(
        changes.begin(), changes.end(), after,
        [](Picoseconds t, const RateCurve::Change& change) { return t < change.from; });
    if (later != changes.end()) next = std::min(next, later->from);
  }
  return next;
}

NicRates NicRates::from(Picoseconds begin) const {
  std::vector<RateCurve> curves;
  for (const RateCurve& curve : curves_) {
    std::vector<RateCurve::Change> changes{{0, curve.ps_per_byte(begin)}};
    for (const RateCurve::Change& change : curve.changes())
      if (change.from > begin) changes.push_back({change.from - begin, change.ps_per_byte});
    curves.emplace_back(std::move(changes));
  }
  return {std::move(curves), curve_of_};
}

}  // namespace ghostrank
