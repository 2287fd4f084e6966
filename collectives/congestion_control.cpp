// The sender's side of DCQCN: at what rate a connection may send, told of congestion by its
// receiver (CNP). Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015:
// figure 7 and the values of table 14; the steps of the increase, 40 and 200 Mb/s at 40 Gb/s there,
// are in proportion to the NIC's rate.
//
//   CNP       target = rate; rate *= 1 - alpha / 2; alpha = (1 - g) alpha + g
//   55 us without one: alpha = (1 - g) alpha
//   every 55 us, and every 10 MB sent: one more increase
//     up to 5 of each since the CNP    rate = (target + rate) / 2
//     more than 5 of both              target += large step, once for each beyond; the same
//     else                             target += small step; the same
//
// Nothing happens by itself: the periods that have passed are counted when a packet is sent and
// when a CNP comes. A packet's gap is that of the rate when it was sent.
//
// Units: bytes per picosecond, emulated picoseconds. Threading: one owner.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "profiles/units.h"

namespace ghostrank {

class Dcqcn {
 public:
  static constexpr Picoseconds kPeriod = 55 * kPicosPerMicro;
  // The receiver sends a connection no more than one CNP in this time.
  static constexpr Picoseconds kBetweenNotices = 50 * kPicosPerMicro;

  explicit Dcqcn(double line_rate = 0) : line_(line_rate), rate_(line_rate), target_(line_rate) {}

  double rate() const { return rate_; }
  bool slowed() const { return slowed_; }  // else it may send at the rate of its NIC

  void on_notice(Picoseconds now) {
    decay(now);
    pass(now);
    target_ = rate_;
    rate_ = std::max(rate_ * (1 - alpha_ / 2), line_ * kLeast);
    alpha_ = (1 - kGain) * alpha_ + kGain;
    decayed_ = timed_ = now;
    periods_ = spans_ = 0;
    sent_ = 0;
    slowed_ = true;
  }

  void on_sent(std::uint64_t bytes, Picoseconds now) {
    if (!slowed_) return;
    pass(now);
    sent_ += bytes;
    for (; sent_ >= kSpan; sent_ -= kSpan) {
      ++spans_;
      increase();
    }
  }

 private:
  static constexpr double kGain = 1.0 / 256;
  static constexpr std::uint64_t kSpan = 10'000'000;
  static constexpr std::uint32_t kFast = 5;
  static constexpr double kSmall = 1e-3, kLarge = 5e-3;  // steps, as shares of the line's rate
  static constexpr double kLeast = 1e-3;                 // of it: a connection never stops

  void decay(Picoseconds now) {
    if (decayed_ < 0) return;
    const auto periods = static_cast<double>((now - decayed_) / kPeriod);
    alpha_ *= std::pow(1 - kGain, periods);
  }

  void pass(Picoseconds now) {
    for (; timed_ + kPeriod <= now && slowed_; timed_ += kPeriod) {
      ++periods_;
      increase();
    }
  }

  void increase() {
    if (std::max(periods_, spans_) > kFast) {
      const std::uint32_t beyond = std::min(periods_, spans_);
      target_ += line_ * (beyond > kFast ? kLarge * (beyond - kFast) : kSmall);
      target_ = std::min(target_, line_);
    }
    rate_ = (target_ + rate_) / 2;
    if (rate_ < line_ * (1 - 1e-6)) return;
    rate_ = target_ = line_;
    slowed_ = false;  // until the next notice, which starts all counts anew
  }

  double line_, rate_, target_;
  double alpha_ = 1;
  Picoseconds decayed_ = -1;               // when alpha was last counted: at a notice; -1: never
  Picoseconds timed_ = 0;                  // until when the increases are counted
  std::uint32_t periods_ = 0, spans_ = 0;  // of time and of bytes, since the last notice
  std::uint64_t sent_ = 0;                 // in the present span
  bool slowed_ = false;
};

}  // namespace ghostrank
