#include "profiles/input/named_text.h"

#include <filesystem>

#include "profiles/input/input_file.h"

namespace ghostrank {

std::string file_named(const std::string& path, const std::string& near) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  for (const fs::path& found : {fs::path(path), fs::path(near) / path})
    if (fs::is_regular_file(found, ignored)) return found.string();
  return "";
}

std::optional<NamedText> named_text(const std::string& value, std::string_view key,
                                    const std::string& near) {
  if (is_text(value)) return NamedText{value, std::string(key)};
  const std::string path = file_named(value, near);
  if (path.empty()) return std::nullopt;
  return NamedText{read_input(path), path};
}

}  // namespace ghostrank
