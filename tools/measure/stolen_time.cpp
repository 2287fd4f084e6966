#include "tools/measure/stolen_time.h"

#include <fstream>
#include <string>
#include <thread>
#include <unistd.h>

namespace ghostrank::report {
namespace {

double stolen_seconds() {
  std::ifstream in("/proc/stat");
  std::string cpu;
  double ticks[8]{};  // user, nice, system, idle, iowait, irq, softirq, steal
  in >> cpu;
  for (double& t : ticks) in >> t;
  return ticks[7] / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

StolenTime::StolenTime() : began_(std::chrono::steady_clock::now()), stolen_(stolen_seconds()) {}

double StolenTime::share() const {
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - began_;
  return (stolen_seconds() - stolen_) / (wall.count() * std::thread::hardware_concurrency());
}

}  // namespace ghostrank::report
