#include "emulator/result/network_report.h"

#include <algorithm>
#include <numeric>

namespace ghostrank {
namespace {

constexpr std::size_t kHottest = 10;

double share(Picoseconds busy, double of_seconds) {
  return of_seconds > 0 ? seconds(busy) / of_seconds : 0;
}

}  // namespace

std::optional<NetworkReport> network_report(const Topology& topology,
                                            const std::vector<LinkCount>& counts, double iterations,
                                            double of_seconds, bool planned) {
  if (topology.links() == 0 || counts.size() != topology.links()) return std::nullopt;
  NetworkReport out;
  out.topology = topology.description();
  out.routing = topology.routing();
  for (const Topology::Tier& tier : topology.tiers()) {
    LinkTier t;
    t.name = tier.name;
    t.links = tier.count;
    LinkCount sum;
    for (std::uint32_t link = tier.first; link < tier.first + tier.count; ++link) {
      sum.merge(counts[link]);
      t.utilisation_max = std::max(t.utilisation_max, share(counts[link].busy, of_seconds));
    }
    t.utilisation_mean = share(sum.busy, of_seconds) / tier.count;
    t.bytes = static_cast<double>(sum.bytes) / iterations;
    t.messages = static_cast<double>(sum.messages) / iterations;
    if (!planned) t.longest_wait_s = seconds(sum.longest_wait);
    out.tiers.push_back(std::move(t));
  }
  std::vector<std::uint32_t> order(counts.size());
  std::iota(order.begin(), order.end(), 0u);
  const std::size_t shown = std::min(kHottest, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(shown), order.end(),
                    [&](std::uint32_t a, std::uint32_t b) {
                      if (counts[a].busy != counts[b].busy) return counts[a].busy > counts[b].busy;
                      if (counts[a].bytes != counts[b].bytes)
                        return counts[a].bytes > counts[b].bytes;
                      return a < b;
                    });
  for (std::size_t i = 0; i < shown && counts[order[i]].messages > 0; ++i) {
    const LinkCount& count = counts[order[i]];
    LinkLoad& load = out.hottest.emplace_back();
    load.link = topology.link_name(order[i]);
    load.utilisation = share(count.busy, of_seconds);
    load.bytes = static_cast<double>(count.bytes) / iterations;
    load.messages = static_cast<double>(count.messages) / iterations;
    if (!planned) load.longest_wait_s = seconds(count.longest_wait);
  }
  return out;
}

void describe_flows(std::uint64_t fluids, NetworkReport& report) {
  report.model = "flow";
  report.fluids = fluids;
  for (LinkTier& tier : report.tiers) tier.longest_wait_s.reset();
  for (LinkLoad& link : report.hottest) link.longest_wait_s.reset();
}

}  // namespace ghostrank
