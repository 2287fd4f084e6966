// Files that this process has read as input: it must not write over them.
//
// Threading: set-up, one thread.
#pragma once

#include <string>
#include <vector>

namespace ghostrank {

void note_read(const std::string& path);
const std::vector<std::string>& files_read();  // by the names under which they were read

// True if writing `path` would replace one of them, under any name.
bool was_read(const std::string& path);

}  // namespace ghostrank
