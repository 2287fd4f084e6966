// Compiled P4 programs that are kept from one run to the next: in $XDG_CACHE_HOME, else ~/.cache,
// under ghostrank/p4. A file is named by a hash of all that it was made of, and may be removed at
// any time. A folder that cannot be read or written keeps nothing, without an error.
//
// Threading: pure functions; processes may keep the same program at the same time.
#pragma once

#include <string>

namespace ghostrank {

// Copies the program that was made of `made_of` to the file `result`; false: none is kept.
bool take_kept_program(const std::string& made_of, const std::string& result);

// Keeps a copy of the file `program`, which was made of `made_of`.
void keep_program(const std::string& made_of, const std::string& program);

}  // namespace ghostrank
