// The grid of a sweep: keys of a job, each with the values that it takes, and all their
// combinations.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <vector>

namespace ghostrank {

struct SweepAxis {
  std::string key;                  // "cluster.nic.rate"
  std::vector<std::string> values;  // as written
};

struct SweepGrid {
  std::vector<SweepAxis> axes;

  std::size_t points() const;
  // The value of each axis at a point; the last axis varies fastest.
  std::vector<std::string> values(std::size_t point) const;
};

// "key=v1,v2;key2=v3": commas inside brackets, braces and quotes belong to a value. Throws
// Error(usage).
SweepGrid parse_grid(const std::string& text);

}  // namespace ghostrank
