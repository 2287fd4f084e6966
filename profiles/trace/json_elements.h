// Reads the elements of one array of a large JSON file one by one, so that memory holds one value,
// not the file. Errors as in json_stream.h. Threading: one thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "profiles/trace/json_stream.h"

namespace ghostrank {

// The file is an array, or an object with the array under `key`. Calls `element` in the order of
// the file with the line in which the element begins, and `other` for every other key of the
// object.
void for_each_element(const std::string& path, std::string_view key,
                      const std::function<void(const JsonTape&, std::uint64_t line)>& element,
                      const std::function<void(std::string_view key, const JsonTape&)>& other);

}  // namespace ghostrank
