// Plain values in a pickle of Python's as values of JSON: None, truth values, numbers, texts,
// lists, tuples (as arrays) and dictionaries. Nothing of the pickle is run: an instruction that
// would look up or call something is refused with its byte, as is whatever else has no plain value.
//
// Input is not trusted. A pickle may use a value in many places; depth, number of values and bytes
// of texts are bounded by the pickle's own size, so that memory is some 40 times it at most.
// Threading: one thread.
#pragma once

#include <string>
#include <string_view>

#include "profiles/trace/json_stream.h"

namespace ghostrank {

// The tape refers to `bytes`, which must outlive it. Leaves out what dictionaries have under the
// key `unread`. Throws Error(usage). `path` is for errors.
JsonTape json_of_pickle(std::string_view bytes, const std::string& path,
                        std::string_view unread = "");

// True if a file that begins so is a dictionary in protocol 0 or 1, which is not read.
bool is_old_pickle(std::string_view head);

}  // namespace ghostrank
