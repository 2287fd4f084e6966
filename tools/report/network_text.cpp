#include "tools/report/network_text.h"

#include <algorithm>

#include "tools/text/humane.h"

namespace ghostrank {
namespace {

// How long messages, packets or calls wait for a tier's links.
std::string wait_text(const LinkTier& tier) {
  if (tier.mean_wait_s.value_or(0) <= 0) return "";
  return ", waits " + humane_seconds(*tier.mean_wait_s) + " on average" +
         (tier.longest_wait_s ? ", at most " + humane_seconds(*tier.longest_wait_s) : "");
}

// The counts of a tier's queues, over all iterations of a run.
std::string queue_text(const std::optional<QueueCount>& queue) {
  if (!queue) return "";
  std::string text;
  const auto add = [&](std::uint64_t count, const char* what) {
    if (count > 0) text += ", " + humane_count(static_cast<double>(count), what);
  };
  if (queue->again > 0)
    text += ", " + humane_count(static_cast<double>(queue->again), "packet") + " sent again";
  add(queue->drops, "drop");
  add(queue->marks, "mark");
  add(queue->pauses, "pause");
  if (!text.empty()) text += " in all iterations";
  if (queue->paused > 0) text += ", paused for " + humane_seconds(seconds(queue->paused));
  return text + ", longest queue " + humane_bytes(static_cast<double>(queue->longest));
}

}  // namespace

std::vector<Fact> network_facts(const std::optional<NetworkReport>& network) {
  if (!network || network->tiers.empty()) return {};
  const std::string how = network->model == "flow"     ? ", as flows"
                          : network->model == "packet" ? ", as packets"
                                                       : "";
  std::vector<Fact> facts{{"network", network->topology + ", " + network->routing + how}};
  for (const LinkTier& t : network->tiers)
    facts.push_back(
        {t.name, humane_bytes(t.bytes) + " per step over " +
                     humane_count(static_cast<double>(t.links), "link") + ", busy " +
                     humane_percent(t.utilisation_mean) + " of the time on average, at most " +
                     humane_percent(t.utilisation_max) + wait_text(t) + queue_text(t.queue)});
  std::string hottest;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, network->hottest.size()); ++i)
    hottest += (i == 0 ? "" : ", ") + network->hottest[i].link + " " +
               humane_percent(network->hottest[i].utilisation);
  if (!hottest.empty()) facts.push_back({"hottest links", hottest});
  return facts;
}

}  // namespace ghostrank
