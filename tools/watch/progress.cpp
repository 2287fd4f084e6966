// See progress.h.
#include "tools/watch/progress.h"

#include <algorithm>
#include <array>
#include <unistd.h>

#include "tools/text/humane.h"
#include "tools/text/table.h"

namespace ghostrank {
namespace {

constexpr double kPlainEverySeconds = 10;
constexpr double kPaintEverySeconds = 0.1;

// Cut to `width` characters, so that the repainted line never wraps.
std::string cut(std::string text, int width) {
  while (!text.empty() && display_width(text) > width) text.pop_back();
  return text;
}

}  // namespace

std::string progress_text(const ProgressState& state) {
  const std::string where =
      state.iteration < 0 ? "warm-up " + std::to_string(state.warmup + state.iteration + 1) + "/" +
                                std::to_string(state.warmup)
      : state.iterations == 0
          ? "iteration " + std::to_string(state.iteration + 1)
          : "iteration " + std::to_string(std::min(state.iteration + 1, state.iterations)) + "/" +
                std::to_string(state.iterations);
  std::string text = where;
  if (state.step_seconds > 0) text += "  step " + humane_seconds(state.step_seconds);
  if (state.iteration >= 0 && state.half_width > 0 && state.wanted_half_width > 0)
    text += "  mean ± " + humane_percent(state.half_width) + " of ± " +
            humane_percent(state.wanted_half_width);
  std::array<char, 16> percent{};
  std::snprintf(percent.data(), percent.size(), "  %3.0f %%", state.fraction * 100);
  text += percent.data();
  text += "  elapsed " + humane_seconds(std::max(0.1, state.wall_seconds));
  if (state.fraction > 0.01 && state.fraction < 1) {
    text += "  left " + humane_seconds(state.wall_seconds * (1 - state.fraction) / state.fraction);
  }
  return text;
}

Progress::Progress(std::FILE* out, Mode mode, int warmup, int iterations, double wanted_half_width)
    : out_(out), mode_(mode) {
  state_.iteration = -warmup;
  state_.iterations = iterations;
  state_.warmup = warmup;
  state_.wanted_half_width = wanted_half_width;
}

void Progress::plays(int iterations, bool measured) {
  (measured ? state_.iterations : state_.warmup) = iterations;
  state_.iteration = measured ? 0 : -iterations;
}

void Progress::iteration_ended(int index, double step_seconds) {
  state_.iteration = index;
  state_.step_seconds = step_seconds;
  if (mode_ == Mode::plain && state_.wall_seconds - last_plain_wall_ >= kPlainEverySeconds) {
    last_plain_wall_ = state_.wall_seconds;
    std::fprintf(out_, "%s\n", progress_text(state_).c_str());
    std::fflush(out_);
  }
  state_.iteration = index + 1;  // now under way
  repaint();
}

void Progress::advanced(double fraction, double wall_seconds) {
  state_.fraction = std::clamp(fraction, 0.0, 1.0);
  state_.wall_seconds = wall_seconds;
  repaint();
}

void Progress::repaint() {
  if (mode_ != Mode::live || state_.wall_seconds - last_paint_wall_ < kPaintEverySeconds) return;
  last_paint_wall_ = state_.wall_seconds;
  std::fprintf(out_, "\r\x1b[K%s",
               cut(progress_text(state_), terminal_width(fileno(out_)) - 1).c_str());
  std::fflush(out_);
  painted_ = true;
}

void Progress::clear() {
  if (!painted_) return;
  std::fprintf(out_, "\r\x1b[K");
  std::fflush(out_);
  painted_ = false;
}

}  // namespace ghostrank
