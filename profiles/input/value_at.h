// Values of a tree by path. Threading: pure.
#pragma once

#include <string_view>

#include "profiles/input/yaml.h"

namespace ghostrank {

// The value of a key such as "experts.count"; null: there is none.
inline const YamlValue* value_at(const YamlValue& root, std::string_view path) {
  const auto dot = path.find('.');
  const YamlValue* child = root.find(path.substr(0, dot));
  return child && dot != path.npos ? value_at(*child, path.substr(dot + 1)) : child;
}

}  // namespace ghostrank
