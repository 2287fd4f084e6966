// Concatenates the tables of all libraries and searches them.
//
// Threading: the first caller builds the table (a thread-safe static).
#include <vector>

#include "collectives/libraries.h"
#include "collectives/library.h"
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
           scheme_rows(),
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
  return library == kSchemes || name == "auto" ? nullptr : find_algorithm(kSchemes, func, name);
}

std::string_view why_absent(std::string_view library, Func func) {
  if (find_algorithm(library, func, "auto") != nullptr) return {};
  if (library_named(library) == Library::nccl && func == Func::barrier)
    return "PyTorch's barrier on NCCL is an allreduce of one element";
  if (library_named(library) == Library::gloo && func == Func::reduce_scatter)
    return "use allreduce, or reduce and scatter";
  return {};
}

const Algorithm& played_row(const Algorithm& row, const Schedule& schedule) {
  const std::string_view played = schedule.played();
  const Algorithm* chosen =
      find_algorithm(row.library, row.func, played.substr(0, played.find('/')));
  return chosen ? *chosen : row;
}

}  // namespace ghostrank
