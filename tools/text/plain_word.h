// Threading: a pure function.
#pragma once

#include <cctype>
#include <string>
#include <string_view>

namespace ghostrank {

// In lower case, without '-' and '_': all-reduce, AllReduce, all_reduce and allreduce are one word.
inline std::string plain_word(std::string_view name) {
  std::string text;
  for (const char c : name)
    if (c != '_' && c != '-')
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace ghostrank
