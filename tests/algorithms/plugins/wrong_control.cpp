// A congestion control that stops its sender at the first loss.
#include "collectives/plugin.h"

namespace {

using namespace ghostrank;

class Stops final : public SenderRate {
 public:
  explicit Stops(double nic_rate) : rate_(nic_rate) {}
  double rate() const override { return rate_; }
  void on_sent(std::uint64_t, Picoseconds) override {}
  void on_answer(const PacketAnswer&, Picoseconds) override {}
  void on_loss(Picoseconds) override { rate_ = 0; }

 private:
  double rate_;
};

const CongestionControl kControls[]{{"stops", [](double nic_rate) -> std::unique_ptr<SenderRate> {
                                       return std::make_unique<Stops>(nic_rate);
                                     }}};

}  // namespace

GHOSTRANK_PLUGIN(kControls)
