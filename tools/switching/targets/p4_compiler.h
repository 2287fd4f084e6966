// p4lang's compilers, found on PATH: of our sources for a number of elements, and of a program of
// the user's own, which may include the parts in switch/p4/slots. What has been compiled before is
// taken from program_cache.h.
//
// Errors are Error(environment): a compiler that is missing or refuses, with what it says.
// Threading: main thread.
#pragma once

#include <string>
#include <vector>

namespace ghostrank {

// The path of a program on PATH. `whose` says for what it is wanted, `from` where it comes from.
std::string program_on_path(const std::string& name, const std::string& whose,
                            const std::string& from);

// What another program prints. Throws when it ends with a failure.
std::string output_of(std::vector<std::string> words, const std::string& input = {});

// Compile `source` to the file `result`: JSON for bmv2, a .spec for DPDK. `elements`: of a packet,
// ELEMENTS in the program; 0: it says so itself.
void compile_for_bmv2(const std::string& source, int elements, const std::string& result);
void compile_for_dpdk(const std::string& source, int elements, const std::string& result);

// Our program for bmv2.
std::string bmv2_source();

}  // namespace ghostrank
