// How long compressing takes in a job: as the method's own cost says, or by a table that was
// measured, as `ghostrank calibrate compression --csv FILE` writes it.
//
// A table has times for some sizes of tensors. Between two of them the time grows evenly; below the
// smallest and above the largest an element takes as long as there.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "profiles/input/keys.h"
#include "profiles/job/job.h"

namespace ghostrank {

// The label of what a host adds to a gathering of payloads.
inline constexpr std::string_view kStaging = "stage";

// Nanoseconds that it takes where a rank receives so many bytes of them; 0 where none are gathered.
double staging_time_ns(const CompressionSpec& spec, double received);

// Nanoseconds that a rank's gradient memory takes, besides compression, for so many elements.
double memory_time_ns(Memory memory, std::uint64_t elements);

// Returns how long a rank takes to compress a tensor of `elements` elements, and to decompress one
// payload of it.
CompressionTime compression_time(const CompressionSpec& spec, std::uint64_t elements);

// Whether a value of compression.costs is the name of a shipped table; any other is a path.
bool names_shipped_costs(const std::string& text);

// The rows of a method, by elements, and the device that they were measured on ("": not said).
struct MeasuredTimes {
  std::vector<CompressionTime> rows;
  std::string device;
};

// The file is looked for from `folder`. Throws Error(usage) where it cannot be read, is no such
// table, or lacks the method.
MeasuredTimes read_compression_times(const Setting& file, const std::string& folder,
                                     std::string_view method);

}  // namespace ghostrank
