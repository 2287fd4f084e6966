#include "profiles/job/nic_rates.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace ghostrank {

RateCurve::Piece RateCurve::piece(Picoseconds at) const {
  const auto after =
      std::upper_bound(changes_.begin(), changes_.end(), at,
                       [](Picoseconds t, const Change& change) { return t < change.from; });
  const auto until = std::max(after, changes_.begin() + 1);
  const auto from = until - 1;
  return {from->ps_per_byte, from == changes_.begin() ? -kEver : from->from,
          until == changes_.end() ? kEver : until->from};
}

Picoseconds RateCurve::duration(Picoseconds start, double bytes) const {
  return SlowerRate({this}).duration(start, bytes);
}

Picoseconds RateCurve::passes_from(Picoseconds at) const {
  for (;;) {
    const Piece now = piece(at);
    if (std::isfinite(now.ps_per_byte) || now.until == kEver)
      return std::isfinite(now.ps_per_byte) ? at : kEver;
    at = now.until;
  }
}

double RateCurve::bytes_between(Picoseconds begin, Picoseconds end) const {
  return SlowerRate({this}).bytes_between(begin, end);
}

Picoseconds RateCurve::duration_until(Picoseconds end, double bytes) const {
  return SlowerRate({this}).duration_until(end, bytes);
}

RateCurve::Piece SlowerRate::piece(Picoseconds at) const {
  const auto sooner = [this](Picoseconds t) {
    return std::abs(t) == RateCurve::kEver ? t : t - later_;
  };
  const RateCurve::Piece one = from_.piece(at), other = to_.piece(at + later_);
  return {std::max(one.ps_per_byte, other.ps_per_byte), std::max(one.from, sooner(other.from)),
          std::min(one.until, sooner(other.until))};
}

Picoseconds SlowerRate::duration(Picoseconds start, double bytes) const {
  double left = bytes;
  for (Picoseconds at = start;;) {
    const RateCurve::Piece now = piece(at);
    const double takes = left * now.ps_per_byte;
    if (now.until == RateCurve::kEver || takes <= static_cast<double>(now.until - at))
      return at - start + picoseconds(takes);
    left -= static_cast<double>(now.until - at) / now.ps_per_byte;
    at = now.until;
  }
}

double SlowerRate::bytes_between(Picoseconds begin, Picoseconds end) const {
  double bytes = 0;
  for (Picoseconds at = begin; at < end;) {
    const RateCurve::Piece now = piece(at);
    const Picoseconds until = std::min(now.until, end);
    bytes += static_cast<double>(until - at) / now.ps_per_byte;
    at = until;
  }
  return bytes;
}

Picoseconds SlowerRate::duration_until(Picoseconds end, double bytes) const {
  double left = bytes;
  for (Picoseconds at = end;;) {
    const RateCurve::Piece before = piece(at - 1);
    const double takes = left * before.ps_per_byte;
    if (before.from == -RateCurve::kEver || takes <= static_cast<double>(at - before.from))
      return end - at + picoseconds(takes);
    left -= static_cast<double>(at - before.from) / before.ps_per_byte;
    at = before.from;
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
