#include "emulator/host/huge_pages.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "emulator/common/log.h"
#include "emulator/host/host_facts.h"

namespace ghostrank {
namespace {

#ifdef MADV_COLLAPSE
constexpr int kCollapse = MADV_COLLAPSE;
#else
constexpr int kCollapse = 25;  // Linux 6.1; glibc's headers name it since 2.37
#endif
constexpr std::uintptr_t kHuge = 2 << 20;
// A larger mapping is not a heap: the shadow of a sanitizer takes terabytes.
constexpr std::uintptr_t kLargest = std::uintptr_t{64} << 30;
constexpr std::uint64_t kLeastResident = 64 << 20;

struct Range {
  std::uintptr_t begin = 0, end = 0;  // multiples of kHuge
};

bool turned_off() {
  std::string mode;
  std::getline(std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"), mode);
  return mode.empty() || mode.find("[never]") != std::string::npos;
}

// Whole chunks in private, writable, anonymous mappings.
std::vector<Range> heap() {
  std::vector<Range> ranges;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0, end = 0, inode = 0;
    std::array<char, 5> rights{};
    int name = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx %4s %*x %*s %llu %n", &begin, &end, rights.data(),
                    &inode, &name) != 4)
      continue;
    const std::string_view what = std::string_view(line).substr(static_cast<std::size_t>(name));
    if (std::string_view(rights.data()) != "rw-p" || inode != 0) continue;
    if (!what.empty() && what != "[heap]" && !what.starts_with("[anon:")) continue;
    const Range range{(begin + kHuge - 1) / kHuge * kHuge, end / kHuge * kHuge};
    if (range.begin < range.end && range.end - range.begin <= kLargest) ranges.push_back(range);
  }
  return ranges;
}

bool mostly_resident(void* chunk, std::size_t page) {
  std::vector<unsigned char> pages(kHuge / page);
  if (mincore(chunk, kHuge, pages.data()) != 0) return false;
  const auto resident =
      std::count_if(pages.begin(), pages.end(), [](unsigned char p) { return (p & 1) != 0; });
  return 2 * static_cast<std::size_t>(resident) >= pages.size();
}

}  // namespace

HugePageCount use_huge_pages() {
  HugePageCount count;
  if (turned_off()) return count;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (const Range& range : heap()) {
    for (std::uintptr_t at = range.begin; at < range.end; at += kHuge) {
      void* const chunk = reinterpret_cast<void*>(at);
      if (!mostly_resident(chunk, page)) continue;
      madvise(chunk, kHuge, MADV_HUGEPAGE);  // also what khugepaged looks for on older kernels
      madvise(chunk, kHuge, kCollapse) == 0 ? ++count.huge : ++count.small;
    }
  }
  return count;
}

HugePages::HugePages()
    : thread_([](const std::stop_token& stop) {
        std::mutex mutex;
        std::condition_variable_any never;
        std::unique_lock lock(mutex);
        for (std::chrono::seconds wait(4);; wait *= 2) {
          if (never.wait_for(lock, stop, wait, [&] { return stop.stop_requested(); })) return;
          if (resident_bytes() < kLeastResident) continue;
          const HugePageCount count = use_huge_pages();
          log_info("huge pages: ", count.huge, " of 2 MiB, ", count.small, " chunks as they were");
        }
      }) {}

}  // namespace ghostrank
