// A value that names a file, or that is the file's text itself, as in the config of a result: text
// has a line break, which no name has.
//
// Errors: Error(usage) as in input_file.h. Threading: reads files, keeps no state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ghostrank {

struct NamedText {
  std::string text;
  std::string name;  // how errors call it: the file's path, or `key`
};

inline bool is_text(std::string_view value) { return value.find('\n') != value.npos; }

// The path as given if there is such a file, else next to the file that names it, in folder `near`;
// empty: there is none.
std::string file_named(const std::string& path, const std::string& near);

// `key`: the job's key whose value it is. nullopt: there is no such file.
std::optional<NamedText> named_text(const std::string& value, std::string_view key,
                                    const std::string& near);

}  // namespace ghostrank
