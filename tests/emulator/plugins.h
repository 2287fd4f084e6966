// Plug-ins that the jobs of a test name.
#pragma once

#include <initializer_list>
#include <memory>

#include "profiles/algorithms/algorithms.h"

namespace ghostrank::testing {

// Keep what it returns for all jobs of a test program: loading also proves the plug-ins.
inline std::shared_ptr<const Algorithms> load_plugins(std::initializer_list<const char*> paths) {
  auto own = std::make_shared<Algorithms>();
  for (const char* path : paths) own->load_plugin(path, ".");
  return own;
}

}  // namespace ghostrank::testing
