// The JSON of what links carry, of results and plans alike.
//
// Threading: pure.
#pragma once

#include <optional>

#include <nlohmann/json.hpp>

#include "emulator/result/result.h"

namespace ghostrank {

// Null: no links are modelled.
nlohmann::ordered_json network_json(const std::optional<NetworkReport>& network);

}  // namespace ghostrank
