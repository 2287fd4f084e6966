// Plain values in a pickle of Python's as JSON text: None, truth values, numbers, texts, lists,
// tuples (as arrays) and dictionaries. Nothing of the pickle is run: an instruction that would look
// up or call something is refused with its byte, as is whatever else has no plain value.
//
// Input is not trusted: depth and length of the result are bounded. Threading: one thread.
#pragma once

#include <string>
#include <string_view>

namespace ghostrank {

// Throws Error(usage). `path` is for errors.
std::string json_of_pickle(std::string_view bytes, const std::string& path);

}  // namespace ghostrank
