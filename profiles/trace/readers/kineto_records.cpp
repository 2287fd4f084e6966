#include "profiles/trace/readers/kineto_records.h"

#include <algorithm>
#include <optional>

#include "profiles/error.h"

namespace ghostrank {

std::map<std::int64_t, std::int64_t> KinetoRecords::number(
    const ExecutionCalls& calls, const std::string& path, const KinetoLaunches& launches,
    std::vector<DeviceKernel>& kernels, const std::vector<std::int64_t>& correlations) {
  if (all_.empty()) return {};
  if (all_.size() != calls.records.size())
    throw Error(path + ": the host recorded " + std::to_string(all_.size()) +
                " calls and waits, but there are " + std::to_string(calls.records.size()) + " in " +
                calls.trace.given.front().file + "; record both over the same steps");
  std::ranges::sort(all_, {}, &KinetoRecord::begin);
  std::map<std::int64_t, std::int64_t> out;
  for (std::size_t i = 0; i < all_.size(); ++i) out.emplace(all_[i].external, calls.records[i]);
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    if (!kernels[k].call) continue;
    const KinetoLaunch* const launch = launches.of(correlations[k]);
    const KinetoRecord* const record = launch ? around(*launch) : nullptr;
    kernels[k].external = record ? std::optional(record->external) : std::nullopt;
  }
  return out;
}

// The record within which the launch lies; null: none.
const KinetoRecord* KinetoRecords::around(const KinetoLaunch& launch) const {
  auto at = std::ranges::upper_bound(all_, launch.at, {}, &KinetoRecord::begin);
  while (at != all_.begin())
    if (--at; at->thread == launch.thread) return launch.at <= at->end ? &*at : nullptr;
  return nullptr;
}

}  // namespace ghostrank
