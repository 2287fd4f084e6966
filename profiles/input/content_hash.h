// FNV-1a hash: tells versions of a content apart, but does not resist forgery. It must stay as it
// is: tables of sweeps, results and kept P4 programs hold it. Threading: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace ghostrank {

inline std::uint64_t content_hash(std::string_view content) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : content) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// As 16 hexadecimal digits.
inline std::string content_hash_text(std::string_view content) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx",
                static_cast<unsigned long long>(content_hash(content)));
  return text.data();
}

}  // namespace ghostrank
