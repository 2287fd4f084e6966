// JSON as every verb writes it: two spaces deep, keys in the order in which they were put, bytes
// that are no UTF-8 replaced; a value that is not known is null. Threading: pure functions.
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
