#include "profiles/load/job_schema.h"

#include <vector>

#include "profiles/load/keys/tables.h"

namespace ghostrank {

std::span<const Key> job_keys() {
  static const std::vector<Key> kKeys = [] {
    std::vector<Key> keys;
    for (const auto table : {job_tables::job, job_tables::cluster, job_tables::schemes,
                             job_tables::parallel, job_tables::collectives, job_tables::gradients,
                             job_tables::hosts, job_tables::fabric, job_tables::run}) {
      const std::span<const Key> rows = table();
      keys.insert(keys.end(), rows.begin(), rows.end());
    }
    return keys;
  }();
  return kKeys;
}

}  // namespace ghostrank
