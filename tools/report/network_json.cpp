#include "tools/report/network_json.h"

#include <cmath>

namespace ghostrank {
namespace {

using Json = nlohmann::ordered_json;

// Writes a whole number as an integer: 1234, not 1234.0.
Json count(double value) {
  return value == std::floor(value) ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

}  // namespace

nlohmann::ordered_json network_json(const std::optional<NetworkReport>& network) {
  if (!network) return nullptr;
  Json tiers = Json::array(), hottest = Json::array();
  for (const LinkTier& t : network->tiers) {
    tiers.push_back({{"name", t.name},
                     {"links", t.links},
                     {"utilisation_mean", t.utilisation_mean},
                     {"utilisation_max", t.utilisation_max},
                     {"bytes", count(t.bytes)},
                     {"messages", count(t.messages)},
                     {"mean_wait_seconds", or_null(t.mean_wait_s)},
                     {"longest_wait_seconds", or_null(t.longest_wait_s)}});
    if (!t.queue) continue;
    tiers.back().update({{"packets", t.queue->packets},
                         {"drops", t.queue->drops},
                         {"marks", t.queue->marks},
                         {"pauses", t.queue->pauses},
                         {"paused_seconds", seconds(t.queue->paused)},
                         {"longest_queue_bytes", t.queue->longest}});
  }
  for (const LinkLoad& l : network->hottest)
    hottest.push_back({{"link", l.link},
                       {"utilisation", l.utilisation},
                       {"bytes", count(l.bytes)},
                       {"messages", count(l.messages)},
                       {"mean_wait_seconds", or_null(l.mean_wait_s)},
                       {"longest_wait_seconds", or_null(l.longest_wait_s)}});
  return {{"model", network->model},       {"topology", network->topology},
          {"routing", network->routing},   {"tiers", std::move(tiers)},
          {"hottest", std::move(hottest)}, {"fluids", network->fluids}};
}

}  // namespace ghostrank
