#include "emulator/host/cpu_quota.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace ghostrank {
namespace {

// A group's cpu.stat: version 2 says throttled_usec, version 1 throttled_time in nanoseconds.
std::optional<double> throttled_in(const std::string& folder) {
  std::ifstream file(folder + "/cpu.stat");
  std::string key;
  double value = 0;
  while (file >> key >> value) {
    if (key == "throttled_usec") return value * 1e-6;
    if (key == "throttled_time") return value * 1e-9;
  }
  return std::nullopt;
}

bool has_cpu(const std::string& controllers) {
  std::istringstream list(controllers);
  for (std::string name; std::getline(list, name, ',');)
    if (name == "cpu") return true;
  return false;
}

}  // namespace

std::optional<double> throttled_seconds(const std::string& cgroups, const std::string& mounted) {
  std::ifstream file(cgroups);
  std::optional<double> longest;
  for (std::string line; std::getline(file, line);) {  // NUMBER:CONTROLLERS:PATH
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && !has_cpu(controllers)) continue;
    const std::string root = controllers.empty() ? mounted : mounted + "/" + controllers;
    std::string path = line.substr(second + 1);
    while (!path.empty()) {  // this group, then those around it
      if (const auto here = throttled_in(root + path))
        longest = std::max(longest.value_or(0), *here);
      path.resize(path.find_last_of('/'));
    }
  }
  return longest;
}

}  // namespace ghostrank
