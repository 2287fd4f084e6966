// FNV-1a hash: tells versions of a content apart, but does not resist forgery. Threading: pure
// function.
#pragma once

#include <cstdint>
#include <string_view>

namespace ghostrank {

inline std::uint64_t content_hash(std::string_view content) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : content) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace ghostrank
