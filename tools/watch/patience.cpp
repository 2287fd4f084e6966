// See patience.h.
#include "tools/watch/patience.h"

#include <fstream>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "tools/text/humane.h"
#include "tools/text/table.h"

namespace ghostrank {
namespace {

constexpr std::chrono::milliseconds kFirst{1000}, kEach{200};

double resident_bytes() {
  std::ifstream in("/proc/self/statm");
  double all = 0, resident = 0;
  in >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

}  // namespace

Patience::Patience(std::string what, bool on) : what_(std::move(what)), out_(stderr) {
  if (on && is_smart_terminal(STDERR_FILENO)) start(kFirst, kEach);
}

Patience::Patience(std::string what, std::FILE* out, std::chrono::milliseconds first,
                   std::chrono::milliseconds each)
    : what_(std::move(what)), out_(out) {
  start(first, each);
}

void Patience::start(std::chrono::milliseconds first, std::chrono::milliseconds each) {
  try {
    thread_ = std::thread([this, first, each] { paint(first, each); });
  } catch (const std::system_error&) {  // no thread to be had: the step is worth more than its line
  }
}

void Patience::paint(std::chrono::milliseconds first, std::chrono::milliseconds each) {
  const auto began = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, first, [this] { return ended_; })) return;
  do {
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    std::fprintf(out_, "\r\x1b[K%s, %.0f s, %s of memory", what_.c_str(), seconds,
                 humane_bytes(resident_bytes()).c_str());
    std::fflush(out_);
  } while (!changed_.wait_for(lock, each, [this] { return ended_; }));
  std::fputs("\r\x1b[K", out_);
  std::fflush(out_);
}

void Patience::end() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

}  // namespace ghostrank
