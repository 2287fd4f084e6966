// JSON with keys in the order of insertion. Threading: pure function.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace ghostrank {

using Json = nlohmann::ordered_json;

// Text from files may hold bytes that are not UTF-8. Indent -1: one line.
inline std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ghostrank
