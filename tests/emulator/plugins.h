// Plug-ins that the jobs of a test name.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "profiles/algorithms/algorithms.h"

namespace ghostrank::testing {

// Loads each list once per test program: loading also proves the plug-ins, which takes seconds.
inline std::shared_ptr<const Algorithms> load_plugins(const std::vector<std::string>& paths) {
  static std::map<std::vector<std::string>, std::shared_ptr<const Algorithms>> loaded;
  std::shared_ptr<const Algorithms>& known = loaded[paths];
  if (known) return known;
  auto own = std::make_shared<Algorithms>();
  for (const std::string& path : paths) own->load_plugin(path, ".");
  return known = std::move(own);
}

}  // namespace ghostrank::testing
