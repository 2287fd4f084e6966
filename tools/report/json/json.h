// JSON as every verb writes it: indented by two spaces, keys in the order of insertion, bytes that
// are not UTF-8 replaced, null for an unknown value. Threading: pure functions.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace ghostrank {

using Json = nlohmann::ordered_json;

inline std::string dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// Writes a whole number as an integer: 1234, not 1234.0. One that is not finite becomes null.
inline Json count_json(double value) {
  const bool whole = value == std::floor(value) && std::abs(value) < 9e15;
  return whole ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace ghostrank
