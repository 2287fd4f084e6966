#include "profiles/planners/shared/machine_memory.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <string_view>
#include <sys/resource.h>

#include "profiles/error.h"

namespace ghostrank {
namespace {

std::string gigabytes(double bytes) {
  const double gb = bytes / 1e9;
  return gb < 10 ? std::to_string(std::llround(gb * 10) / 10) + "." +
                       std::to_string(std::llround(gb * 10) % 10) + " GB"
                 : std::to_string(std::llround(gb)) + " GB";
}

}  // namespace

std::uint64_t available_memory_bytes() {
  constexpr std::string_view kKey = "MemAvailable:";
  std::uint64_t available = 0;
  std::ifstream in("/proc/meminfo");
  for (std::string word; in >> word;) {
    if (word != kKey) continue;
    in >> available;
    available *= 1024;
    break;
  }
  rlimit limit{};
  if (available == 0 || getrlimit(RLIMIT_AS, &limit) != 0) return available;
  return std::min<std::uint64_t>(available, limit.rlim_cur);
}

void need_memory(double bytes, const std::string& what, const std::string& remedy) {
  const auto have = static_cast<double>(available_memory_bytes());
  if (have == 0 || bytes <= have) return;
  throw Error(what + " needs about " + gigabytes(bytes) + " of memory, available are " +
              gigabytes(have) + "; " + remedy);
}

}  // namespace ghostrank
