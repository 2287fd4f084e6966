// The rows of a job's keys, a table for each part of a job. load/job_schema.cpp joins them in the
// order in which documents list them.
#pragma once

#include <span>
#include <string_view>

#include "profiles/input/keys.h"

namespace ghostrank {

inline constexpr std::string_view kJobSchema = "ghostrank/job/1";
inline constexpr std::string_view kResultSchema = "ghostrank/result/1";

}  // namespace ghostrank

namespace ghostrank::job_tables {

// Bounds of several tables.
inline constexpr double kMaxMicros = 1e9;
inline constexpr double kMaxSize = 1LL << 40;
inline constexpr double kMaxRate = 1e18;
inline constexpr auto kLater = false;  // for Key::available

std::span<const Key> job();
std::span<const Key> cluster();
std::span<const Key> schemes();
std::span<const Key> parallel();
std::span<const Key> collectives();
std::span<const Key> gradients();
std::span<const Key> hosts();
std::span<const Key> fabric();
std::span<const Key> run();

}  // namespace ghostrank::job_tables
