// A capture as a profile's text, schema ghostrank/model/1. Threading: pure functions.
#pragma once

#include <string>
#include <vector>

#include "profiles/capture/merge.h"

namespace ghostrank {

// The network as the profile states it.
struct CaptureNetwork {
  double rate_bps = 0, latency_us = 0;
};

// `comments` are lines at the top of the file.
std::string capture_profile(const Captured& captured, const CaptureNetwork& network,
                            const std::string& name, const std::vector<std::string>& comments);

// Microseconds, as a profile states times.
std::string micros_text(double nanos);
inline std::string micros_text(Nanos nanos) { return micros_text(static_cast<double>(nanos)); }

// A text in double quotes, as YAML reads it.
std::string yaml_quoted(const std::string& text);

}  // namespace ghostrank
