// The sender's side of DCQCN. Zhu et al., "Congestion Control for Large-Scale RDMA Deployments",
// SIGCOMM 2015: figure 7 and the values of table 14; the steps of the increase, 40 and 200 Mb/s at
// 40 Gb/s there, are in proportion to the NIC's rate. A notice is its CNP.
//
//   notice    target = rate; rate *= 1 - alpha / 2; alpha = (1 - g) alpha + g
//   55 us without one: alpha = (1 - g) alpha
//   every 55 us, and every 10 MB sent: one more increase
//     up to 5 of each since the notice  rate = (target + rate) / 2
//     more than 5 of both               target += large step, once for each beyond; the same
//     else                              target += small step; the same
//
// Nothing happens by itself: the periods that have passed are counted when a packet is sent and
// when a notice comes. The rate at which a packet leaves sets the gap behind that packet.
#include "collectives/congestion_control.h"

#include <algorithm>
#include <cmath>

namespace ghostrank {
namespace {

constexpr Picoseconds kMicrosecond = 1'000'000;
constexpr Picoseconds kPeriod = 55 * kMicrosecond, kBetweenNotices = 50 * kMicrosecond;

class Dcqcn final : public SenderRate {
 public:
  explicit Dcqcn(double nic_rate) : line_(nic_rate), rate_(nic_rate), target_(nic_rate) {}

  double rate() const override { return rate_; }

  void on_sent(std::uint64_t bytes, Picoseconds now) override {
    if (!slowed_) return;
    pass(now);
    sent_ += bytes;
    for (; sent_ >= kSpan; sent_ -= kSpan) {
      ++spans_;
      increase();
    }
  }

  void on_answer(const PacketAnswer& answer, Picoseconds now) override {
    if (!answer.notice) return;
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

  void on_loss(Picoseconds) override {}

 private:
  static constexpr double kGain = 1.0 / 256;
  static constexpr std::uint64_t kSpan = 10'000'000;
  static constexpr std::uint32_t kFast = 5;
  static constexpr double kSmall = 1e-3, kLarge = 5e-3;  // steps, as shares of the NIC's rate
  static constexpr double kLeast = 1e-3;                 // of it

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

std::unique_ptr<SenderRate> make_dcqcn(double nic_rate) {
  return std::make_unique<Dcqcn>(nic_rate);
}

constexpr CongestionControl kControls[]{{"dcqcn", make_dcqcn, kBetweenNotices}, {"none"}};

}  // namespace

std::span<const CongestionControl> congestion_controls() { return kControls; }

}  // namespace ghostrank
