// All libraries' tables, one after the other, and the search in them.
//
// Threading: the concatenation is made once, on first use, by whichever thread comes first.
#include <vector>

#include "collectives/libraries.h"
#include "collectives/schedule.h"

namespace ghostrank {
namespace {

std::vector<Algorithm> all_rows() {
  std::vector<Algorithm> all;
  for (const auto rows : {
           generic_rows(),
           gloo_rows(),
           nccl_rows(),
           openmpi_rows(),
       })
    all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

}  // namespace

std::span<const Algorithm> registry() {
  static const std::vector<Algorithm> kRegistry = all_rows();
  return kRegistry;
}

const Algorithm* find_algorithm(std::string_view library, Func func, std::string_view name) {
  for (const Algorithm& row : registry())
    if (row.library == library && row.func == func && (name == "auto" || row.name == name))
      return &row;
  return nullptr;
}

}  // namespace ghostrank
