// The library that a row imitates, whatever its release: "nccl-2.28" and "nccl-2.30" are both
// NCCL's.
//
// Threading: pure functions.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

namespace ghostrank {

enum class Library : std::uint8_t {
  generic,
  gloo,
  nccl,
  openmpi,
  other,  // a plugin's, or none: schemes, a file
};

inline constexpr std::pair<Library, std::string_view> kLibraries[] = {
    {Library::generic, "generic"},
    {Library::gloo, "gloo"},
    {Library::nccl, "nccl"},
    {Library::openmpi, "openmpi"},
};

// `name`: a library's, with or without a release after a dash.
constexpr Library library_named(std::string_view name) {
  for (const auto& [library, word] : kLibraries)
    if (name.substr(0, name.find('-')) == word) return library;
  return Library::other;
}

constexpr std::string_view name_of(Library library) {
  for (const auto& [known, word] : kLibraries)
    if (known == library) return word;
  return "other";
}

// True if the library alone decides how a call is cut, and into how many channels and messages at
// once.
constexpr bool has_own_rules(Library library) {
  return library == Library::gloo || library == Library::openmpi;
}

}  // namespace ghostrank
