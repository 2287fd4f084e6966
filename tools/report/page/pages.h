// A page of the files that a command line names, by the schema of the first.
//
// Threading: reads files.
#pragma once

#include <string>
#include <vector>

#include "tools/report/json/field.h"

namespace ghostrank {

// One or more results (ghostrank/result/1), one comparison (compare/1), one sweep (sweep/1), or one
// bench of a collective (nccl-tests' form).
// Throws Error(usage) that names the file and the key or line.
std::string page_of(const std::vector<std::string>& files);

std::string comparison_page(const std::string& file);  // reads it again
std::string sweep_page(const Field& root);
std::string bench_page(const Field& root);

}  // namespace ghostrank
