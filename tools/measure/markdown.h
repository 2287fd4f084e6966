// Markdown tables, and the sections of documents that programs write.
//
// Threading: pure functions, except write_section().
#pragma once

#include <string>
#include <vector>

namespace ghostrank::report {

using Row = std::vector<std::string>;
std::string markdown_line(const Row& row);
std::string markdown_table(const std::vector<Row>& rows);  // the first is the heading

// Replaces the text between `<!-- NAME: begin -->` and `<!-- NAME: end -->`. Throws
// std::runtime_error when the file has no such section or cannot be written.
void write_section(const std::string& file, const std::string& name, const std::string& text);

}  // namespace ghostrank::report
