// The files that come with the program, or that GHOSTRANK_PROFILES adds, by name.
//
// Threading: reads the environment and folders, keeps no state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ghostrank {

// In order: $GHOSTRANK_PROFILES (colon-separated), the profiles installed with this program, the
// source tree it was built from, the installed share directory.
std::vector<std::string> profile_directories();

// The file NAME + extension in this folder of the first profile directory that has it; empty: none.
std::string shipped_file(const std::string& name, std::string_view folder,
                         std::string_view extension = ".yaml");
// All such names, sorted.
std::vector<std::string> shipped_names(std::string_view folder,
                                       std::string_view extension = ".yaml");

}  // namespace ghostrank
