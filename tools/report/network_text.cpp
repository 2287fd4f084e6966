#include "tools/report/network_text.h"

#include <algorithm>

#include "tools/text/humane.h"

namespace ghostrank {

std::vector<Fact> network_facts(const std::optional<NetworkReport>& network) {
  if (!network) return {};
  const bool flow = network->model == "flow";
  std::vector<Fact> facts{
      {"network", network->topology + ", " + network->routing + (flow ? ", as flows" : "")}};
  for (const LinkTier& t : network->tiers)
    facts.push_back({t.name, humane_bytes(t.bytes) + " per step over " +
                                 humane_count(static_cast<double>(t.links), "link") + ", busy " +
                                 humane_percent(t.utilisation_mean) +
                                 " of the time on average, at most " +
                                 humane_percent(t.utilisation_max)});
  std::string hottest;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, network->hottest.size()); ++i)
    hottest += (i == 0 ? "" : ", ") + network->hottest[i].link + " " +
               humane_percent(network->hottest[i].utilisation);
  if (!hottest.empty()) facts.push_back({"hottest links", hottest});
  return facts;
}

}  // namespace ghostrank
