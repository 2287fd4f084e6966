// Reads input files whole, up to a bound, and notes them in files_read.h. Pipes are files, too.
//
// Errors: Error(usage) "PATH: what is wrong; what to do". Threading: set-up, one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ghostrank {

// `remedy` ends the error about a file that is missing or a folder: "give a result of 'run
// --json'".
std::string read_input(const std::string& path, std::string_view remedy = "check the path",
                       std::uint64_t most_bytes = std::uint64_t{64} << 20);

}  // namespace ghostrank
