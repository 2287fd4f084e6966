#include "tools/report/json/network_json.h"

#include "tools/report/json/json.h"

namespace ghostrank {
nlohmann::ordered_json network_json(const std::optional<NetworkReport>& network) {
  if (!network) return nullptr;
  Json tiers = Json::array(), hottest = Json::array();
  for (const LinkTier& t : network->tiers) {
    tiers.push_back({{"name", t.name},
                     {"links", t.links},
                     {"utilisation_mean", t.utilisation_mean},
                     {"utilisation_max", t.utilisation_max},
                     {"bytes", count_json(t.bytes)},
                     {"messages", count_json(t.messages)},
                     {"mean_wait_seconds", or_null(t.mean_wait_s)},
                     {"longest_wait_seconds", or_null(t.longest_wait_s)}});
    if (!t.queue) continue;
    tiers.back().update({{"packets", t.queue->packets},
                         {"sent_again", t.queue->again},
                         {"drops", t.queue->drops},
                         {"marks", t.queue->marks},
                         {"pauses", t.queue->pauses},
                         {"paused_seconds", seconds(t.queue->paused)},
                         {"longest_queue_bytes", t.queue->longest}});
  }
  for (const LinkLoad& l : network->hottest)
    hottest.push_back({{"link", l.link},
                       {"utilisation", l.utilisation},
                       {"bytes", count_json(l.bytes)},
                       {"messages", count_json(l.messages)},
                       {"mean_wait_seconds", or_null(l.mean_wait_s)},
                       {"longest_wait_seconds", or_null(l.longest_wait_s)}});
  return {{"model", network->model},       {"topology", network->topology},
          {"routing", network->routing},   {"tiers", std::move(tiers)},
          {"hottest", std::move(hottest)}, {"fluids", network->fluids}};
}

}  // namespace ghostrank
