// The libraries that play NCCL: name, rules, and the NCCL release that the rules are derived from.
//
// Threading: constants.
#pragma once

#include <array>
#include <string_view>

#include "collectives/nccl/settings/split.h"

namespace ghostrank {

struct NcclLibrary {
  std::string_view name;
  NcclVersion version;
  int release;  // as ncclGetVersion() gives it
};
inline constexpr std::array kNcclLibraries{NcclLibrary{"nccl-2.28", NcclVersion::v2_28, 22809},
                                           NcclLibrary{"nccl-2.30", NcclVersion::v2_30, 23007}};

// Null: the name is none of NCCL's.
constexpr const NcclLibrary* nccl_library(std::string_view name) {
  for (const NcclLibrary& library : kNcclLibraries)
    if (library.name == name) return &library;
  return nullptr;
}

}  // namespace ghostrank
