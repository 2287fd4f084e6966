// The tables that the registry is made of: one per library, each in a file of its own. Within a
// table the first row of a function is what "auto" means for that library.
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
