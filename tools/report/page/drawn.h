// A picture of tools/text/svg.h inside a page, whose style sheet gives it the page's colours.
//
// Threading: a pure function.
#pragma once

#include <algorithm>
#include <string>

namespace ghostrank {

inline std::string drawn(const std::string& svg) {
  const std::size_t begin = std::min(svg.find("<svg"), svg.size());  // after the XML declaration
  return "<div class=\"drawn\">" + svg.substr(begin) + "</div>\n";
}

}  // namespace ghostrank
