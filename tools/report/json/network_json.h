// The load of the modelled links as JSON, the same for results and plans.
//
// Threading: pure.
#pragma once

#include <optional>

#include <nlohmann/json.hpp>

#include "emulator/result/result.h"

namespace ghostrank {

// Null when no links are modelled.
nlohmann::ordered_json network_json(const std::optional<NetworkReport>& network);

}  // namespace ghostrank
