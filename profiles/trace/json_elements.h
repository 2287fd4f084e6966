// The elements of one array of a large JSON file, one after the other: what is kept is a value, not
// the file. Errors as json_stream.h. Threading: one thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "profiles/trace/json_stream.h"

namespace ghostrank {

// The file is an array, or an object with the array under `key`. Of an object, other values go to
// `other` (with their key); `element` is called in the file's order, with the line it begins in.
void for_each_element(const std::string& path, std::string_view key,
                      const std::function<void(const JsonTape&, std::uint64_t line)>& element,
                      const std::function<void(std::string_view key, const JsonTape&)>& other);

}  // namespace ghostrank
