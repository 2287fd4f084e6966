// The files that this process has read as its input: nothing may be written over them.
//
// Threading: set-up, one thread.
#pragma once

#include <string>

namespace ghostrank {

void note_read(const std::string& path);

// Whether writing `path` would replace one of them, by whatever name.
bool was_read(const std::string& path);

}  // namespace ghostrank
