// Where the step goes, and how it varies.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "tools/report/page/pictures.h"
#include "tools/report/page/svg_parts.h"
#include "tools/text/humane.h"

namespace ghostrank {
namespace {

constexpr int kNameColumns = 28;

struct Part {
  const char *kind, *name;
  double StepBar::*seconds;
};
constexpr std::array<Part, 3> kParts{{{"compute", "compute", &StepBar::compute},
                                      {"exposed", "exposed communication", &StepBar::exposed},
                                      {"bubble", "bubble", &StepBar::bubble}}};

// Of the parts that some bar has.
std::string legend(double x, double y, const std::vector<StepBar>& bars, bool rest) {
  std::string body;
  const auto entry = [&](const char* kind, const char* name) {
    body += page::box(x, y - 10, 12, 12, kind, "") + page::text(x + 17, y, "start", name);
    x += 17 + page::width_of(name) + 18;
  };
  for (const Part& part : kParts)
    if (std::any_of(bars.begin(), bars.end(),
                    [&](const StepBar& bar) { return bar.*part.seconds > 0; }))
      entry(part.kind, part.name);
  if (rest) entry("rest", "other");
  return body;
}

// What is left of the step: its parts are means over ranks, and the step is that of the last one.
double rest_of(const StepBar& bar) {
  return std::max(0.0, bar.seconds - bar.compute - bar.exposed - bar.bubble);
}

std::string bar_of(const StepBar& bar, double left, double y, double height, double per_second) {
  std::string body;
  double at = left;
  const auto add = [&](const char* kind, const char* name, double seconds) {
    const double width = seconds * per_second;
    if (!(width > 0)) return;
    const std::string share = humane_percent(seconds / bar.seconds);
    body += page::box(at, y, width, height, kind,
                      std::string(name) + ": " + humane_seconds(seconds) + ", " + share);
    if (page::width_of(share) + 8 < width)
      body += page::text(at + width / 2, y + height / 2 + 4, "middle", share, "on");
    at += width;
  };
  for (const Part& part : kParts) add(part.kind, part.name, bar.*part.seconds);
  add("rest", "other", rest_of(bar));
  return body;
}

bool varies(const StepDots& column) {
  return std::any_of(column.seconds.begin(), column.seconds.end(),
                     [&](double s) { return s != column.seconds.front(); });
}

}  // namespace

std::string step_bars(const std::vector<StepBar>& bars) {
  constexpr double kWidth = 720, kHeight = 30, kGap = 10, kRight = 90, kTop = 4;
  double most = 0, names = 0;
  bool rest = false;
  for (const StepBar& bar : bars) {
    most = std::max({most, bar.seconds, bar.compute + bar.exposed + bar.bubble});
    if (!bar.name.empty())
      names = std::max(names, page::width_of(page::shortened(bar.name, kNameColumns)) + 12);
    rest = rest || rest_of(bar) > 0.005 * bar.seconds;
  }
  if (!(most > 0)) return "";
  std::string body;
  double y = kTop;
  for (const StepBar& bar : bars) {
    if (!bar.name.empty())
      body += page::text(names - 8, y + kHeight / 2 + 4, "end",
                         page::shortened(bar.name, kNameColumns));
    body += bar_of(bar, names, y, kHeight, kWidth / most);
    const double end = std::max(bar.seconds, bar.compute + bar.exposed + bar.bubble) / most;
    body += page::text(names + kWidth * end + 8, y + kHeight / 2 + 4, "start",
                       humane_seconds(bar.seconds));
    y += kHeight + kGap;
  }
  body += legend(names, y + 12, bars, rest);
  return page::svg(names + kWidth + kRight, y + 22, "where the step goes", body);
}

std::string step_dots(const std::vector<StepDots>& columns) {
  constexpr double kLeft = 92, kTop = 12, kHeight = 200, kBottom = 30, kLeastColumn = 150,
                   kMostWidth = 900, kSingle = 420;
  if (std::none_of(columns.begin(), columns.end(), varies)) return "";
  double least = std::numeric_limits<double>::infinity(), most = -least;
  const auto span = [&](double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  };
  for (const StepDots& c : columns) {
    for (const double s : c.seconds) span(s);
    if (c.interval) span(c.interval->first), span(c.interval->second);
  }
  const double margin = (most - least) * 0.08;
  least -= margin, most += margin;
  if (!(most > least) || !std::isfinite(most - least)) return "";
  const auto count = static_cast<double>(columns.size());
  const double width = columns.size() == 1 ? kSingle : std::min(kMostWidth, count * kLeastColumn);
  const auto y_of = [&](double s) { return kTop + kHeight * (1 - (s - least) / (most - least)); };
  // Where all are nearly alike, ticks are differences, as their times would look the same.
  const double base = columns.front().median;
  const bool near = base > 0 && most - least < 0.02 * base;
  std::string body;
  for (const double tick :
       near ? page::ticks(least - base, most - base, 5) : page::ticks(least, most, 5)) {
    const double y = y_of(near ? tick + base : tick);
    const std::string sign = !near || tick == 0 ? "" : tick > 0 ? "+" : "-";
    body += page::line(kLeft, y, kLeft + width, y, "grid") +
            page::text(kLeft - 8, y + 4, "end",
                       near && std::abs(tick) < 1e-15 ? humane_seconds(base)
                                                      : sign + humane_seconds(std::abs(tick)));
  }
  body += page::line(kLeft, kTop, kLeft, kTop + kHeight, "axis");
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const StepDots& c = columns[i];
    const double wide = width / count, middle = kLeft + wide * (static_cast<double>(i) + 0.5),
                 half = wide * 0.4;
    body += page::text(middle, kTop + kHeight + 20, "middle",
                       page::shortened(c.name, static_cast<int>(wide / 7)));
    if (c.interval)
      body += page::box(middle - half, y_of(c.interval->second), 2 * half,
                        y_of(c.interval->first) - y_of(c.interval->second), "interval",
                        "95 %: " + humane_seconds(c.interval->first) + " to " +
                            humane_seconds(c.interval->second));
    if (!c.seconds.empty())
      body += page::line(middle - half, y_of(c.median), middle + half, y_of(c.median), "median");
    constexpr std::size_t kMostDots = 400;  // every so many of more
    const std::size_t every = 1 + c.seconds.size() / (kMostDots + 1);
    for (std::size_t k = 0; k < c.seconds.size(); k += every) {
      const double x =
          middle +
          half * (2 * (static_cast<double>(k) + 0.5) / static_cast<double>(c.seconds.size()) - 1);
      body += page::dot(x, y_of(c.seconds[k]), 3.5, "dot",
                        std::to_string(k) + ": " + humane_seconds(c.seconds[k]));
    }
  }
  return page::svg(kLeft + width + 12, kTop + kHeight + kBottom, "step times", body);
}

}  // namespace ghostrank
