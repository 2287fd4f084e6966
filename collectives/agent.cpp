#include "collectives/agent.h"

namespace ghostrank {

std::string_view name_of(Stage stage) {
  static constexpr std::string_view kNames[] = {
      "", "COORDINATE_REDUCE", "REDUCE", "COMPRESS", "PUSH", "PULL", "DECOMPRESS", "BROADCAST"};
  return kNames[static_cast<std::size_t>(stage)];
}

std::string_view name_of(PartyKind kind) {
  switch (kind) {
    case PartyKind::rank:
      return "rank";
    case PartyKind::server:
      return "server";
    case PartyKind::aggregator:
      return "aggregator";
    case PartyKind::network_switch:
      return "switch";
  }
  return "";
}

}  // namespace ghostrank
