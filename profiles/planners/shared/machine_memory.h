// What this machine has left, held against what is about to be made: a slip of a number is refused
// before it takes all of it.
//
// Threading: reads the kernel's tables.
#pragma once

#include <cstdint>
#include <string>

namespace ghostrank {

// What may still be taken: of the machine, or of this process's limit where that is less. 0:
// unknown.
std::uint64_t available_memory_bytes();

// Throws Error(usage) "WHAT needs about 24 GB of memory, available are 15 GB; REMEDY" where that is
// so.
void need_memory(double bytes, const std::string& what, const std::string& remedy);

}  // namespace ghostrank
