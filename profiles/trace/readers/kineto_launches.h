// Launches by the host in a Kineto trace, by the number ("correlation") that a kernel shares with
// its launch, and ranges of the host in which they lie. Times are nanoseconds of the file's clock.
// Threading: values.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <string_view>
#include <vector>

#include "profiles/trace/readers/device_kernels.h"

namespace ghostrank {

// By an event's category ("cat"). The latter names are those of PyTorch up to 1.11.
inline bool is_of_device(std::string_view category) {
  constexpr std::string_view kOfDevice[] = {"kernel", "gpu_memcpy", "gpu_memset",
                                            "Kernel", "Memcpy",     "Memset"};
  return std::find(std::begin(kOfDevice), std::end(kOfDevice), category) != std::end(kOfDevice);
}
inline bool is_launch(std::string_view category) {  // cuda_runtime, xpu_driver, ...
  return category.ends_with("_runtime") || category.ends_with("_driver") || category == "Runtime";
}

struct KinetoLaunch {
  std::int64_t correlation = 0, at = 0, thread = 0;
  auto operator<=>(const KinetoLaunch&) const = default;
};

class KinetoLaunches {
 public:
  void clear() { all_.clear(); }
  void add(const KinetoLaunch& launch) { all_.push_back(launch); }
  void sort() { std::sort(all_.begin(), all_.end()); }

  // After sort(). Null: there is none.
  const KinetoLaunch* of(std::int64_t correlation) const {
    const auto at = std::lower_bound(all_.begin(), all_.end(), KinetoLaunch{correlation});
    return correlation >= 0 && at != all_.end() && at->correlation == correlation ? &*at : nullptr;
  }

  // Removes from both vectors, which are by kernel, the kernels of NCCL that were launched before
  // the trace began: no event of the host leads to them, and they come before all kernels of their
  // stream to which one does. Returns their number. After sort().
  std::size_t leave_out_earlier(std::vector<DeviceKernel>& kernels,
                                std::vector<std::int64_t>& correlations) const {
    std::map<std::int64_t, std::int64_t> first;  // by stream: start of a kernel with a launch
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      if (!of(correlations[k])) continue;
      const auto at = first.try_emplace(kernels[k].stream, kernels[k].start).first;
      at->second = std::min(at->second, kernels[k].start);
    }
    if (first.empty()) return 0;
    std::size_t kept = 0;
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      const DeviceKernel& kernel = kernels[k];
      const auto at = first.find(kernel.stream);
      const bool unknown = kernel.call && kernel.event.kind == TraceEvent::Kind::join &&
                           !kernel.external && !of(correlations[k]);
      if (unknown && (at == first.end() || kernel.start < at->second)) continue;
      if (kept < k) kernels[kept] = kernel;
      correlations[kept++] = correlations[k];
    }
    const std::size_t left_out = kernels.size() - kept;
    kernels.resize(kept);
    correlations.resize(kept);
    return left_out;
  }

 private:
  std::vector<KinetoLaunch> all_;
};

struct KinetoRange {
  std::int64_t thread = 0, begin = 0, end = 0;
  auto operator<=>(const KinetoRange&) const = default;
};

// Ranges of which those of one thread do not overlap.
class KinetoRanges {
 public:
  void clear() { all_.clear(); }
  void add(const KinetoRange& range) { all_.push_back(range); }
  void sort() { std::sort(all_.begin(), all_.end()); }

  // The range in which the launch lies; null: none. After sort().
  const KinetoRange* around(const KinetoLaunch& launch) const {
    constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
    const auto after =
        std::upper_bound(all_.begin(), all_.end(), KinetoRange{launch.thread, launch.at, kLast});
    if (after == all_.begin()) return nullptr;
    const KinetoRange& range = *std::prev(after);
    return range.thread == launch.thread && range.end >= launch.at ? &range : nullptr;
  }

  // The end of the range before this one of around() on its thread; 0: there is none.
  std::int64_t end_before(const KinetoRange& range) const {
    const bool first = &range == &all_.front() || (&range - 1)->thread != range.thread;
    return first ? 0 : (&range - 1)->end;
  }

 private:
  std::vector<KinetoRange> all_;
};

}  // namespace ghostrank
