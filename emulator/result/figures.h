// How far the figures of a run in real time may be off because of this machine.
//
// Every step and every call carries the lateness that the machine may have added to it. A figure is
// computed twice, with and without that lateness, and the distance is its error. So a figure has
// the validity that its own samples give it: one late step spoils the mean and p99, not the median.
//
// Threading: pure functions.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "emulator/result/result.h"

namespace ghostrank {

// |played - true| / true, at most kErrorUnknown, which also stands for a true figure of 0 or less.
inline constexpr double kErrorUnknown = 1000;
double error_of(double played, double without_lateness);

using Statistic = std::function<double(const std::vector<double>&)>;
double error_of(const Statistic& statistic, std::span<const double> played,
                std::span<const double> late);

// The error of the median of steps with these durations, of which `late_seconds` are lateness.
double median_error(std::span<const double> seconds, std::span<const double> late_seconds);

// The figures of the measured iterations: those of step_time, and the parts of a step.
std::vector<Figure> step_figures(const std::vector<IterationReport>& iterations);

// The figures of a job beside others: its mean steps and its slow-down. A slow-down is a ratio of
// two plays, and may be off by the lateness of either.
std::vector<Figure> job_figures(const JobReport& job);

// Whether the figure of that name, if there is one, may be believed.
bool is_valid(std::span<const Figure> figures, std::string_view name);

// The error of the time of calls. `own`: as their slip tells. Slip does not show that a call is too
// short because a member joined late, so where the median step is not valid, its error is a lower
// bound.
double call_error(double own, std::span<const Figure> figures);

}  // namespace ghostrank
