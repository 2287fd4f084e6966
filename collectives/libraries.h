// The tables that the registry concatenates: one per library, each in its own file. "auto" selects
// the first row of a function in the library's table.
//
// Threading: constant data.
#pragma once

#include <span>

#include "collectives/schedule.h"

namespace ghostrank {

std::span<const Algorithm> gloo_rows();     // gloo/rows.cpp
std::span<const Algorithm> generic_rows();  // generic/rows.cpp
std::span<const Algorithm> openmpi_rows();  // openmpi/rows.cpp
std::span<const Algorithm> nccl_rows();     // nccl/rows.cpp
std::span<const Algorithm> scheme_rows();   // schemes/scheme_rows.cpp

}  // namespace ghostrank
