// Methods of compression, as tests name them.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "collectives/compressor.h"

namespace ghostrank {

inline const Compressor& method_named(std::string_view name) {
  for (const Compressor& one : compressors())
    if (one.name == name) return one;
  throw std::invalid_argument(std::string(name));
}

}  // namespace ghostrank
