// A congestion control of your own as a plug-in: it keeps a connection's round trips near a target
// and needs no marks, like Swift (Kumar et al., SIGCOMM 2020), whose windows and scaling of the
// target it leaves out.
//
//   target = shortest round trip so far + 15 us in queues
//   once in a round trip
//     not above the target: rate += 1 % of the NIC's
//     above it:             rate *= 1 - 0.8 (round trip - target) / round trip, at least a half
//     a loss:               rate /= 2
//
// Build it with the CMakeLists.txt beside it; in a job
//   collectives: {plugins: [delay_target.so]}
//   fabric: {kind: virtual, network: packet, queues: {congestion_control: delay-target}}
#include <algorithm>

#include "collectives/plugin.h"

namespace {

using namespace ghostrank;

class DelayTarget final : public SenderRate {
 public:
  explicit DelayTarget(double nic_rate) : nic_rate_(nic_rate), rate_(nic_rate) {}

  double rate() const override { return rate_; }

  void on_sent(std::uint64_t, Picoseconds) override {}

  void on_answer(const PacketAnswer& answer, Picoseconds now) override {
    round_trip_ = answer.round_trip;
    shortest_ = shortest_ == 0 ? round_trip_ : std::min(shortest_, round_trip_);
    const Picoseconds above = round_trip_ - (shortest_ + kInQueues);
    if (above <= 0)
      change(rate_ + kRaise * nic_rate_, now);
    else
      lower(1 - kLower * static_cast<double>(above) / static_cast<double>(round_trip_), now);
  }

  void on_loss(Picoseconds now) override { lower(0, now); }

 private:
  static constexpr Picoseconds kInQueues = 15'000'000;
  static constexpr double kRaise = 0.01, kLower = 0.8, kLeast = 1e-3;

  void lower(double factor, Picoseconds now) { change(rate_ * std::max(factor, 0.5), now); }

  void change(double rate, Picoseconds now) {
    if (now < next_change_) return;
    next_change_ = now + round_trip_;
    rate_ = std::clamp(rate, kLeast * nic_rate_, nic_rate_);
  }

  double nic_rate_, rate_;
  Picoseconds round_trip_ = 0, shortest_ = 0;  // 0: no answer yet
  Picoseconds next_change_ = 0;
};

const CongestionControl kControls[]{
    {"delay-target", [](double nic_rate) -> std::unique_ptr<SenderRate> {
       return std::make_unique<DelayTarget>(nic_rate);
     }}};

}  // namespace

GHOSTRANK_PLUGIN(kControls)
