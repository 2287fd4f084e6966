#include "tools/diagnosis/step_load.h"

#include <algorithm>
#include <cmath>

#include "profiles/job/nic_rates.h"

namespace ghostrank {
namespace {

// Bits per second on average from time 0 to `seconds`, which is above 0.
double mean_bps(const RateCurve& curve, double seconds) {
  const auto end = static_cast<Picoseconds>(std::llround(seconds * 1e12));
  const auto& changes = curve.changes();
  double bytes = 0;
  for (std::size_t i = 0; i < changes.size() && changes[i].from < end; ++i) {
    const Picoseconds until = i + 1 < changes.size() ? std::min(end, changes[i + 1].from) : end;
    bytes += static_cast<double>(until - changes[i].from) / changes[i].ps_per_byte;
  }
  return bytes * 8 / seconds;
}

}  // namespace

Framed framed(const Framing& framing, double bytes, double messages) {
  if (messages <= 0) return {};
  const double size = std::ceil(bytes / messages);
  const double per_message =
      framing.packet_payload == 0 || size <= 0 ? 1 : std::ceil(size / framing.packet_payload);
  const double packets = messages * per_message;
  return {packets, bytes + packets * framing.per_packet + messages * framing.per_message};
}

NicSetting nic_setting(const JobSpec& spec) {
  const ClusterSpec& cluster = spec.cluster;
  return {cluster.nics_per_node, cluster.rank_nodes(),         cluster.all_nodes(),
          cluster.nic.rate_bps,  cluster.servers.nic.rate_bps, cluster.nic_rates.get(),
          spec.fabric.framing};
}

std::vector<NicUse> nic_uses(std::span<const NicTraffic> nics, const NicSetting& setting,
                             double step_seconds, double seconds) {
  std::vector<NicUse> uses;
  for (const NicTraffic& nic : nics) {
    const int node = nic.nic.value() / std::max(1, setting.nics_per_node);
    if (node >= setting.all_nodes) continue;
    const bool helper = node >= setting.rank_nodes;
    const RateCurve* const curve =
        setting.rates && seconds > 0 ? setting.rates->of(nic.nic) : nullptr;
    const double bps = curve    ? mean_bps(*curve, seconds)
                       : helper ? setting.helper_bps
                                : setting.bps;
    for (const bool sends : {true, false}) {
      NicUse use{nic.nic,
                 sends,
                 helper,
                 sends ? nic.tx_bytes : nic.rx_bytes,
                 sends ? nic.tx_messages : nic.rx_messages,
                 0,
                 bps,
                 {}};
      use.wire_bytes = framed(setting.framing, use.bytes, use.messages).bytes;
      if (bps > 0 && step_seconds > 0) use.busy = use.wire_bytes * 8 / bps / step_seconds;
      uses.push_back(use);
    }
  }
  return uses;
}

double seconds_of_calls(double bytes, double algbw_GBps, double seconds_median, double calls) {
  return algbw_GBps > 0 ? bytes / (algbw_GBps * 1e9) : seconds_median * calls;
}

std::string bottleneck_of(const StepLoad& load) {
  if (!load.kept_up) return "host-cpu";
  if (load.seconds <= 0 || load.of_several_jobs) return "";
  const double compute = load.compute_seconds / load.seconds;
  const double exposed = load.waiting_seconds / load.seconds;
  const double link = std::max(load.link_busy, load.helper_busy);
  const std::string resource = load.helper_busy > load.link_busy ? "switch" : "link";
  if (link >= kSaturated && link >= compute) return resource;
  if (compute >= kSaturated) return "compute";
  if (link >= kExplains * exposed) return resource;
  // Devices compress on the stream of the calls: exposed, and none of the calls' time.
  const bool compresses = load.compresses && load.collective_seconds &&
                          *load.collective_seconds < (1 - kExplains) * load.waiting_seconds;
  return compresses ? "compute" : "latency";
}

}  // namespace ghostrank
