#include "emulator/result/network_report.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <string>
#include <utility>

namespace ghostrank {
namespace {

constexpr std::size_t kHottest = 10;

double share(Picoseconds busy, double of_seconds) {
  return of_seconds > 0 ? seconds(busy) / of_seconds : 0;
}

double mean_wait(const LinkCount& count) {
  return count.passed == 0 ? 0 : seconds(count.waited) / static_cast<double>(count.passed);
}

// `links`: the links of `counts` that have not failed.
LinkTier tier_of(std::string name, std::span<const LinkCount> counts, std::size_t links,
                 double iterations, double of_seconds) {
  LinkTier t;
  t.name = std::move(name);
  t.links = static_cast<std::uint32_t>(links);
  LinkCount sum;
  for (const LinkCount& count : counts) {
    sum.merge(count);
    t.utilisation_max = std::max(t.utilisation_max, share(count.busy, of_seconds));
  }
  t.utilisation_mean = links > 0 ? share(sum.busy, of_seconds) / static_cast<double>(links) : 0;
  t.bytes = static_cast<double>(sum.bytes) / iterations;
  t.messages = static_cast<double>(sum.messages) / iterations;
  t.mean_wait_s = mean_wait(sum);
  t.longest_wait_s = seconds(sum.longest_wait);
  t.queue = sum.queue;
  return t;
}

LinkTier tier_of(const Topology::Tier& tier, const std::vector<LinkCount>& counts,
                 double iterations, double of_seconds) {
  return tier_of(tier.name, {counts.data() + tier.first, tier.count}, tier.count - tier.failed,
                 iterations, of_seconds);
}

}  // namespace

std::optional<NetworkReport> network_report(const Topology& topology,
                                            const std::vector<LinkCount>& counts, double iterations,
                                            double of_seconds, bool planned) {
  if (topology.links() == 0 || counts.size() != topology.links()) return std::nullopt;
  NetworkReport out;
  out.topology = topology.description();
  if (const QueuePairs& pairs = topology.queue_pairs(); pairs.several())
    out.topology += ", " + std::to_string(pairs.count) + " queue pairs a connection" +
                    (pairs.split ? ", which share each message" : "");
  out.routing = topology.routing();
  for (const Topology::Tier& tier : topology.tiers()) {
    LinkTier t = tier_of(tier, counts, iterations, of_seconds);
    if (planned) t.mean_wait_s.reset(), t.longest_wait_s.reset();
    t.queue.reset();
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
  for (std::size_t i = 0; i < shown; ++i) {
    const LinkCount& count = counts[order[i]];
    if (count.bytes == 0 && count.messages == 0) break;
    LinkLoad& load = out.hottest.emplace_back();
    load.link = topology.link_name(order[i]);
    load.utilisation = share(count.busy, of_seconds);
    load.bytes = static_cast<double>(count.bytes) / iterations;
    load.messages = static_cast<double>(count.messages) / iterations;
    if (planned) continue;
    load.mean_wait_s = mean_wait(count);
    load.longest_wait_s = seconds(count.longest_wait);
  }
  return out;
}

void describe_flows(std::uint64_t fluids, NetworkReport& report) {
  report.model = "flow";
  report.fluids = fluids;
  for (LinkTier& tier : report.tiers) tier.longest_wait_s.reset();
  for (LinkLoad& link : report.hottest) link.longest_wait_s.reset();
}

NetworkReport packet_report(const Topology& topology, const std::vector<LinkCount>& counts,
                            double iterations, double of_seconds) {
  const std::uint32_t links = topology.links();
  const std::size_t nics = (counts.size() - links) / 2;
  const std::vector<LinkCount> between(counts.begin(), counts.begin() + links);
  NetworkReport out = network_report(topology, between, iterations, of_seconds)
                          .value_or(NetworkReport{.topology = "one switch", .routing = "one path"});
  out.model = "packet";
  const std::vector<Topology::Tier> tiers = topology.tiers();
  for (std::size_t t = 0; t < tiers.size(); ++t)
    out.tiers[t] = tier_of(tiers[t], counts, iterations, of_seconds);
  const LinkCount* const nic = counts.data() + links;
  out.tiers.insert(out.tiers.begin(),
                   tier_of("nic-switch", {nic, nics}, nics, iterations, of_seconds));
  out.tiers.push_back(tier_of("switch-nic", {nic + nics, nics}, nics, iterations, of_seconds));
  return out;
}

std::optional<LinkHistory> link_history(const Topology& topology, const LinkTimes& times,
                                        double of_seconds) {
  if (times.links() == 0 || of_seconds <= 0) return std::nullopt;
  LinkHistory out;
  std::vector<std::pair<double, std::uint32_t>> order;  // of those that were busy
  for (std::uint32_t link = 0; link < times.links(); ++link) {
    const std::vector<float>& bins = times.of(link);
    if (const double busy = std::accumulate(bins.begin(), bins.end(), 0.0); busy > 0)
      order.push_back({-busy, link});
  }
  std::sort(order.begin(), order.end());
  out.bin_seconds = seconds(times.width());
  out.used = static_cast<std::uint32_t>(order.size());
  order.resize(std::min(order.size(), LinkHistory::kMost));
  const auto bins = static_cast<std::size_t>(
      std::clamp(std::ceil(of_seconds / out.bin_seconds), 1.0, double{LinkTimes::kBins}));
  for (const auto& [busy, link] : order) {
    out.links.push_back(topology.link_name(link));
    std::vector<float>& shares = out.busy.emplace_back();
    for (std::size_t bin = 0; bin < bins; ++bin)
      shares.push_back(times.of(link)[bin] / static_cast<float>(times.width()));
  }
  return out;
}

}  // namespace ghostrank
