#include "profiles/trace/readers/kineto_others.h"

#include <algorithm>
#include <map>
#include <set>

namespace ghostrank {

void settle_others(const std::vector<OtherKernel>& others, std::vector<DeviceKernel>& kernels) {
  if (others.empty()) return;
  std::set<std::int64_t> of_nccl;
  for (const DeviceKernel& kernel : kernels)
    if (kernel.call && kernel.external) of_nccl.insert(*kernel.external);
  std::map<std::int64_t, DeviceKernel*> first_of;  // by External id
  for (const OtherKernel& other : others) {
    DeviceKernel& kernel = kernels[other.kernel];
    if (!kernel.external || of_nccl.contains(*kernel.external)) continue;
    const auto [at, fresh] = first_of.emplace(*kernel.external, &kernel);
    if (!fresh) {
      DeviceKernel& first = *at->second;
      first.start = std::min(first.start, kernel.start);
      first.end = std::max(first.end, kernel.end);
      kernel.start = kernel.end;
      kernel.event.counted = false;
      continue;
    }
    const TraceEvent computation = kernel.event;
    kernel.event = other.call;
    kernel.event.name = computation.name;
    kernel.event.position = computation.position;
    kernel.call = true;
  }
}

}  // namespace ghostrank
