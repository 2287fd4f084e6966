#include "profiles/load/sections/run.h"

#include <algorithm>
#include <optional>

#include "profiles/input/quantity.h"

namespace ghostrank {
namespace {

// The emulated clock ends a little later (kClockEnd).
constexpr double kLongestSeconds = 26.0 * 24 * 3600;

constexpr double kLeastCap = 1e6;  // a fragment of 1 MiB then takes eight seconds

double read_duration(const Setting& setting) {
  if (!setting.given || setting.text.empty()) return 0;
  const std::optional<double> seconds = parse_duration(setting.text);
  if (!seconds || *seconds <= 0 || *seconds > kLongestSeconds)
    fail(setting.mark, "run.duration is " + quote(setting.text) +
                           "; write a time above 0 and up to 26d, such as 90s, 30m, 24h or 7d");
  return *seconds;
}

RunEnd read_end(const Settings& in) {
  RunEnd end;
  end.duration = read_duration(in.at("run.duration"));
  end.ci95 = in.number("run.until.ci95_percent") / 100;
  end.max_seconds = in.number("run.until.max_seconds");
  if (end.duration > 0 && end.ci95 > 0)
    fail(in.at("run.duration").mark,
         "run.duration and run.until both say when the run ends; leave one out, or bound "
         "run.until by its max_seconds");
  if (end.is_open() && in.number("run.min_seconds") > 0)
    fail(in.at("run.min_seconds").mark, "run.min_seconds and " + std::string(key_of_open_end(end)) +
                                            " both say how long the run lasts; leave one out");
  return end;
}

}  // namespace

std::string_view key_of_open_end(const RunEnd& end) {
  return end.duration > 0 ? "run.duration" : end.ci95 > 0 ? "run.until" : "";
}

double read_max_rate(const Setting& setting) {
  if (setting.text == "none" || setting.text.empty()) return 0;
  const std::optional<double> rate = parse_rate(setting.text);
  if (!rate || *rate < kLeastCap)
    fail(setting.mark, "safety.max_rate_per_nic is " + quote(setting.text) +
                           "; write a rate of 1Mbps or more, such as 10Gbps, or none");
  return *rate;
}

void read_run(const Settings& in, RunSpec& out) {
  out.iterations = in.small("run.iterations");
  out.warmup = in.small("run.warmup");
  out.min_seconds = in.number("run.min_seconds");
  out.end = read_end(in);
  if (out.end.ci95 > 0)
    out.iterations = std::max(out.iterations, in.small("run.until.min_iterations"));
  out.verify = in.boolean("run.verify");
  out.seed = in.integer("run.seed");
  out.jitter = in.number("run.jitter");
  out.compute_slowdown = in.number("run.compute_slowdown");
  out.stall_timeout_s = in.number("run.stall_timeout_s");
  out.shards = in.small("run.shards");
  out.probe_ms = in.small("run.probe_ms");
}

}  // namespace ghostrank
