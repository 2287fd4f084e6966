// A congestion control whose senders share one count of the bytes that they have sent.
#include "collectives/plugin.h"

namespace {

using namespace ghostrank;

class Shares final : public SenderRate {
 public:
  explicit Shares(double nic_rate) : rate_(nic_rate) {}
  double rate() const override { return rate_; }
  void on_sent(std::uint64_t bytes, Picoseconds) override {
    static std::uint64_t sent = 0;
    sent += bytes;
    rate_ = 1 / static_cast<double>(sent);
  }
  void on_answer(const PacketAnswer&, Picoseconds) override {}
  void on_loss(Picoseconds) override {}

 private:
  double rate_;
};

const CongestionControl kControls[]{{"shares", [](double nic_rate) -> std::unique_ptr<SenderRate> {
                                       return std::make_unique<Shares>(nic_rate);
                                     }}};

}  // namespace

GHOSTRANK_PLUGIN(kControls)
