// See outcome.h.
#include "tools/outcome.h"

#include <array>
#include <csignal>
#include <cstdio>
#include <ctime>

#include "emulator/stalls.h"

namespace ghostrank {

std::unique_ptr<Control> meet(World world, const RunSpec& run) {
  world.silence = silence_of_the_lost(run);
  return Control::meet(world);
}

int failed(const std::string& why) {
  std::fprintf(stderr, "ghostrank: %s\n", why.c_str());
  return 1;
}

int stopped_status(const Control& control, int signal) {
  if (control.stop() == Stop::interrupted) return 128 + (signal != 0 ? signal : SIGINT);
  return control.stop() == Stop::none ? 0 : 1;
}

std::string local_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return text.data();
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

}  // namespace ghostrank
