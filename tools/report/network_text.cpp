#include "tools/report/network_text.h"

#include <algorithm>

#include "tools/text/humane.h"

namespace ghostrank {
namespace {

// What packets met in the queues of a tier, in a run's iterations together.
std::string queue_text(const std::optional<QueueCount>& queue) {
  if (!queue) return "";
  std::string text;
  const auto add = [&](std::uint64_t count, const char* what) {
    if (count > 0) text += ", " + humane_count(static_cast<double>(count), what);
  };
  add(queue->drops, "drop");
  add(queue->marks, "mark");
  add(queue->pauses, "pause");
  return text + ", longest queue " + humane_bytes(static_cast<double>(queue->longest));
}

}  // namespace

std::vector<Fact> network_facts(const std::optional<NetworkReport>& network) {
  if (!network) return {};
  const std::string how = network->model == "flow"     ? ", as flows"
                          : network->model == "packet" ? ", as packets"
                                                       : "";
  std::vector<Fact> facts{{"network", network->topology + ", " + network->routing + how}};
  for (const LinkTier& t : network->tiers)
    facts.push_back({t.name, humane_bytes(t.bytes) + " per step over " +
                                 humane_count(static_cast<double>(t.links), "link") + ", busy " +
                                 humane_percent(t.utilisation_mean) +
                                 " of the time on average, at most " +
                                 humane_percent(t.utilisation_max) + queue_text(t.queue)});
  std::string hottest;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, network->hottest.size()); ++i)
    hottest += (i == 0 ? "" : ", ") + network->hottest[i].link + " " +
               humane_percent(network->hottest[i].utilisation);
  if (!hottest.empty()) facts.push_back({"hottest links", hottest});
  return facts;
}

}  // namespace ghostrank
