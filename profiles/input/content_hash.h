// FNV-1a hash: tells versions of a content apart, but does not resist forgery. It must stay as it
// is: tables of sweeps, results and kept P4 programs hold it. Threading: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace ghostrank {

// `before`: the hash of what comes before this content.
inline std::uint64_t content_hash(std::string_view content,
                                  std::uint64_t before = 0xcbf29ce484222325) {
  std::uint64_t hash = before;
  for (const char c : content) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// As 16 hexadecimal digits.
inline std::string hash_text(std::uint64_t hash) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(hash));
  return text.data();
}
inline std::string content_hash_text(std::string_view content) {
  return hash_text(content_hash(content));
}

}  // namespace ghostrank
