// See outcome.h.
#include "tools/watch/outcome.h"

#include <array>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <unistd.h>

#include "emulator/control/meet.h"
#include "emulator/shard/measured/stalls.h"
#include "profiles/error.h"
#include "tools/arguments.h"
#include "tools/text/table.h"
#include "tools/version.h"

namespace ghostrank {

namespace {

constexpr double kSilentWaitSeconds = 5;

}  // namespace

std::unique_ptr<Control> meet(World world, const RunSpec& run) {
  world.silence = silence_of_the_lost(run);
  if (const std::string commit = build_facts().commit; world.build.empty() && commit != "unknown")
    world.build = std::string(GHOSTRANK_VERSION) + " " + commit;
  const std::string there = meeting_point(world);
  // A terminal gets one line, repainted with the seconds waited; a log gets the line once.
  struct Line {
    const bool live = is_smart_terminal(STDERR_FILENO);
    bool told = false;
    ~Line() {  // also when nobody came, before the error
      if (live && told) std::fputs("\r\033[K", stderr);
    }
  } line;
  world.on_wait = [&](const std::string& whom, double seconds) {
    if (!line.live && (line.told || seconds < kSilentWaitSeconds)) return;
    std::fprintf(stderr, "%swaiting at %s for %s, %.0f s%s", line.live ? "\r\033[K" : "",
                 there.c_str(), whom.c_str(), seconds, line.live ? "" : "\n");
    std::fflush(stderr);
    line.told = true;
  };
  return Control::meet(world);
}

int prepared_here(const World& world, const std::function<void()>& prepare) {
  try {
    prepare();
    return 0;
  } catch (const Error& error) {
    if (world.size == 1) throw;
    failed(printable(as_typed(error.what())));
    if (is_terminal(STDERR_FILENO))
      std::fprintf(stderr, "waiting up to %lld s to tell the other processes (Ctrl-C ends this)\n",
                   static_cast<long long>(world.timeout.count()));
    try {
      const std::unique_ptr<Control> control = meet(world, RunSpec{});
      const bool here = error.exit_code() == static_cast<int>(ErrorKind::environment);
      control->fail(error.what(), here ? Stop::machine : Stop::failed);
      control->close();
    } catch (const Error&) {  // nobody waits
    }
    return error.exit_code();
  }
}

int failed(const std::string& why) {
  std::fprintf(stderr, "ghostrank: %s\n", why.c_str());
  return 1;
}

int stopped_status(const Control& control, int signal) {
  if (control.stop() == Stop::interrupted) return 128 + (signal != 0 ? signal : SIGINT);
  if (control.stop() == Stop::machine) return static_cast<int>(ErrorKind::environment);
  return control.stop() == Stop::none ? 0 : 1;
}

int unless_interrupted(const Control& control, const StopOnSignal& signals,
                       const std::function<int()>& play) {
  try {
    return play();
  } catch (const Error& error) {
    if (control.stop() != Stop::interrupted) throw;
    if (control.world().rank == 0) failed(error.what());
    return stopped_status(control, signals.received());
  }
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
