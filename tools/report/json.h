// JSON as every verb writes it: indented by two spaces, keys in the order of insertion, bytes that
// are not UTF-8 replaced, null for an unknown value. Threading: pure functions.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace ghostrank {

using Json = nlohmann::ordered_json;

inline std::string dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

inline Json or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace ghostrank
