// See bench/watch.h.
#include "tools/verbs/bench/watch.h"

#include <cstdio>
#include <utility>

namespace ghostrank {

BenchWatch::BenchWatch(std::size_t phases, bool live, std::function<void(const Result&)> started)
    : phases_(phases), live_(live), started_(std::move(started)) {}

void BenchWatch::set_timeout(int seconds, Control& control) {
  timeout_s_ = seconds;
  control_ = &control;
}

void BenchWatch::begin(std::size_t phase, std::string what) {
  phase_ = phase;
  what_ = std::move(what);
  began_ = std::chrono::steady_clock::now();
}

void BenchWatch::clear() {
  if (painted_) std::fputs("\r\033[K", stderr);
  painted_ = false;
}

void BenchWatch::on_start(const Result& started) {
  if (started_) std::exchange(started_, nullptr)(started);
}

void BenchWatch::check_time() {
  if (timeout_s_ == 0 || control_->stop() != Stop::none) return;
  if (std::chrono::steady_clock::now() - began_ > std::chrono::seconds(timeout_s_))
    control_->fail(what_ + " took longer than the " + std::to_string(timeout_s_) +
                   " s of --timeout");
}

// A phase may have many plays, each too short to report progress.
void BenchWatch::on_play(int /*iterations*/, bool /*measured*/) { check_time(); }

void BenchWatch::on_progress(double fraction, double wall_seconds) {
  check_time();
  if (!live_) return;
  std::fprintf(stderr, "\r\033[K%zu of %zu: %s, %.0f %%, %.0f s", phase_ + 1, phases_,
               what_.c_str(), fraction * 100, wall_seconds);
  std::fflush(stderr);
  painted_ = true;
}

}  // namespace ghostrank
