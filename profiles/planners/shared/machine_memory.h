// Compares this machine's free memory with a planned allocation, so that a mistyped number
// is refused before it takes all memory.
//
// Threading: reads /proc/meminfo and the process's limits.
#pragma once

#include <cstdint>
#include <string>

namespace ghostrank {

// Bytes that this process may still allocate: the machine's available memory, or the process's
// address space limit if that is less. 0: unknown.
std::uint64_t available_memory_bytes();

// Throws Error(usage) "WHAT needs about 24 GB of memory, available are 15 GB; REMEDY" if `bytes`
// are more than available.
void need_memory(double bytes, const std::string& what, const std::string& remedy);

}  // namespace ghostrank
