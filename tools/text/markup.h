// Text inside XML and HTML.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace ghostrank {

// With U+FFFD in place of bytes that are not UTF-8 and of characters that XML does not allow, as
// names of files and other people's results may hold any byte; and with &, <, > and " as entities.
// So it can stand in an element and in an attribute between double quotes.
std::string escaped(std::string_view text);

}  // namespace ghostrank
