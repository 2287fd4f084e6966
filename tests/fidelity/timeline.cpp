#include "tests/fidelity/timeline.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <stdexcept>
#include <vector>

#include "tests/fidelity/peers.h"
#include "tests/lab/capture.h"
#include "tests/lab/pcap.h"

namespace ghostrank::fidelity {
namespace {

using testing::Lab;
using testing::TcpSegment;

constexpr double kPause = 0.02;  // seconds; a forward pass sends nothing for longer
constexpr int kWidth = 1000, kHeight = 160, kMargin = 40;

// Payload bytes that host 0 sends in each millisecond of a step, from the step's first byte.
using Bins = std::vector<double>;

bool is_control(const testing::Flow& flow) {
  for (const int port : {testing::kPort, kPlayPort})
    if (flow.source_port == port || flow.target_port == port) return true;
  return false;
}

std::vector<std::vector<TcpSegment>> steps_of(const std::vector<TcpSegment>& segments) {
  std::vector<std::vector<TcpSegment>> steps;
  double last = -1;
  for (const TcpSegment& s : segments) {
    if (is_control(s.flow)) continue;
    if (steps.empty() || s.seconds - last > kPause) steps.emplace_back();
    steps.back().push_back(s);
    last = s.seconds;
  }
  return steps;
}

// Returns the file of a complete capture. Plays again when packets were lost, as a busy machine
// drops captured ones.
std::string captured(Lab& lab, const std::function<void()>& play) {
  for (int attempt = 0; attempt < 4; ++attempt) {
    testing::Capture capture(lab, 0);
    play();
    if (capture.stop()) return capture.file();
  }
  throw std::runtime_error("tcpdump lost packets four times: the machine is too busy");
}

Bins capture_step(Lab& lab, const std::function<void()>& play) {
  const auto steps = steps_of(testing::tcp_segments(captured(lab, play)));
  if (steps.size() < 2) throw std::runtime_error("the capture has no two training steps");
  Bins bins;
  const auto& step = steps[steps.size() - 2];
  for (const TcpSegment& s : step) {
    const auto at = static_cast<std::size_t>((s.seconds - step.front().seconds) * 1e3);
    bins.resize(std::max(bins.size(), at + 1));
    bins[at] += s.bytes;
  }
  return bins;
}

std::string panel(const std::string& name, const Bins& bins, std::size_t across, double up,
                  int top) {
  std::string path;
  char point[64];
  for (std::size_t i = 0; i < bins.size(); ++i) {
    const double x = kMargin + static_cast<double>(i) * kWidth / static_cast<double>(across);
    const double height = kHeight * bins[i] / up;
    if (bins[i] == 0) continue;
    std::snprintf(point, sizeof point, "M%.2f %d v%.2f", x, top + kHeight, -height);
    path += point;
  }
  return "<text x='" + std::to_string(kMargin) + "' y='" + std::to_string(top - 6) + "'>" + name +
         "</text>\n<path d='" + path + "' stroke='#2166ac' stroke-width='0.8'/>\n<path d='M" +
         std::to_string(kMargin) + " " + std::to_string(top + kHeight) + " h" +
         std::to_string(kWidth) + "' stroke='black'/>\n";
}

}  // namespace

void draw_timeline(Lab& lab, const std::function<void()>& torch,
                   const std::function<void()>& ghostrank, const std::string& svg) {
  const Bins theirs = capture_step(lab, torch), ours = capture_step(lab, ghostrank);
  const std::size_t across = std::max(theirs.size(), ours.size());
  const double up = std::max(*std::max_element(theirs.begin(), theirs.end()),
                             *std::max_element(ours.begin(), ours.end()));
  const int height = 2 * kHeight + 4 * kMargin, width = kWidth + 2 * kMargin;
  char scale[160];
  std::snprintf(scale, sizeof scale,
                "%zu ms from the first byte of a step; full height: %.0f KiB in a millisecond",
                across, up / 1024);
  std::ofstream out(svg);
  out << "<svg xmlns='http://www.w3.org/2000/svg' width='" << width << "' height='" << height
      << "' font-family='sans-serif' font-size='13'>\n<rect width='100%' height='100%' "
         "fill='white'/>\n"
      << panel("PyTorch over gloo", theirs, across, up, kMargin)
      << panel("ghostrank", ours, across, up, 2 * kMargin + kHeight) << "<text x='" << kMargin
      << "' y='" << height - kMargin / 2 << "'>" << scale << "</text>\n</svg>\n";
  if (!out) throw std::runtime_error("cannot write " + svg);
}

}  // namespace ghostrank::fidelity
