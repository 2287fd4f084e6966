// Rates of NICs that change in time. A rate is constant from one change to the next, and a message
// takes as long as the integral of the rate needs for its bytes:
//
//   rate      ████████████████▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄    10 Gb/s, then 5 Gb/s
//   message         ├── 6 MB ─┼── 4 MB ─┤         4.8 ms + 6.4 ms
//
// Time counts from the beginning of the warm-up, and again from that of the measured iterations, as
// the engine's does.
//
// Units: emulated picoseconds, bytes on the wire. Threading: immutable.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "collectives/common/number.h"
#include "profiles/units.h"

namespace ghostrank {

class RateCurve {
 public:
  static constexpr Picoseconds kEver = std::numeric_limits<Picoseconds>::max();
  struct Change {
    Picoseconds from = 0;
    double ps_per_byte = 0;  // above 0; infinite: nothing passes until the next change
  };
  struct Piece {  // a time in which a rate is constant
    double ps_per_byte = 0;
    Picoseconds from = -kEver, until = kEver;
  };
  // `changes` go upwards from time 0.
  explicit RateCurve(std::vector<Change> changes) : changes_(std::move(changes)) {}

  const std::vector<Change>& changes() const { return changes_; }
  double ps_per_byte(Picoseconds at) const { return piece(at).ps_per_byte; }
  Piece piece(Picoseconds at) const;
  // How long the bytes take from `start` on. With one rate that is LinkSpeed::serialise, exactly.
  Picoseconds duration(Picoseconds start, double bytes) const;
  // The first time from `at` on at which bytes pass; kEver: there is none.
  Picoseconds passes_from(Picoseconds at) const;
  // How many bytes there is time for.
  double bytes_between(Picoseconds begin, Picoseconds end) const;
  // How long the bytes have taken that end at `end`.
  Picoseconds duration_until(Picoseconds end, double bytes) const;

 private:
  std::vector<Change> changes_;
};

// The rate of a NIC: a curve, or where that is null a constant; 0: unlimited.
struct NicRate {
  const RateCurve* curve = nullptr;
  double ps_per_byte = 0;
  bool limited() const { return curve || ps_per_byte > 0; }
  RateCurve::Piece piece(Picoseconds at) const {
    return curve ? curve->piece(at) : RateCurve::Piece{ps_per_byte};
  }
};

// The rate at which bytes pass from one NIC to another: at each time that of the slower one. What
// leaves the one at a time is `later` at the other. Times are those of the first one.
class SlowerRate {
 public:
  explicit SlowerRate(NicRate from, NicRate to = {}, Picoseconds later = 0)
      : from_(from), to_(to), later_(later) {}

  // As of RateCurve.
  Picoseconds duration(Picoseconds start, double bytes) const;
  double bytes_between(Picoseconds begin, Picoseconds end) const;
  Picoseconds duration_until(Picoseconds end, double bytes) const;
  // When one of the rates changes next; RateCurve::kEver: never.
  Picoseconds next_change(Picoseconds after) const { return piece(after).until; }

 private:
  RateCurve::Piece piece(Picoseconds at) const;

  NicRate from_, to_;
  Picoseconds later_;
};

class NicRates {
 public:
  static constexpr Picoseconds kNever = std::numeric_limits<Picoseconds>::max();
  static constexpr std::uint32_t kConstant = 0xffffffff;

  // `curve_of`: by NIC of the cluster, an index into `curves`, or kConstant.
  NicRates(std::vector<RateCurve> curves, VectorBy<Nic, std::uint32_t> curve_of)
      : curves_(std::move(curves)), curve_of_(std::move(curve_of)) {}

  // Null: the NIC keeps its rate.
  const RateCurve* of(Nic nic) const {
    if (nic.value() >= curve_of_.size() || curve_of_[nic] == kConstant) return nullptr;
    return &curves_[curve_of_[nic]];
  }
  // When any NIC's rate changes next; kNever: none does.
  Picoseconds next_change(Picoseconds after) const;
  // The same NICs, with `begin` as time 0.
  NicRates from(Picoseconds begin) const;

 private:
  std::vector<RateCurve> curves_;
  VectorBy<Nic, std::uint32_t> curve_of_;
};

}  // namespace ghostrank
