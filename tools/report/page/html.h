// Pieces of a page: tables, facts, sections. A page is HTML that an XML parser reads, too, so every
// element is closed, and all text is escaped where it becomes part of the page: what is passed here
// as text may hold anything, what is passed as html comes from these functions.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/text/table.h"

namespace ghostrank {

// <name class="kind">text</name>; without a kind no class.
std::string element(std::string_view name, std::string_view text, std::string_view kind = "");

// Empty where the table has no rows, or no facts are there.
std::string html_table(const Table& table);
std::string html_facts(const std::vector<Fact>& facts);
std::string html_list(const std::vector<std::string>& lines);

// Empty where the html inside is.
std::string section(std::string_view title, const std::string& html);
std::string figure(std::string_view caption, const std::string& html);
std::string folded(std::string_view title, const std::string& html);

// The whole document, with its style sheet.
std::string html_page(std::string_view title, const std::string& html);

}  // namespace ghostrank
