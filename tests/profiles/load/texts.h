// Texts of job files, and changes to texts, for the tests of what loads them.
#pragma once

#include <string>

#include <gtest/gtest.h>

namespace ghostrank::test {

// What most jobs begin with; what a test appends begins in line 4.
inline const std::string kHead = "schema: ghostrank/job/1\nmodel: resnet50\ndevice: h100-sxm\n";

// The text with `to` in place of the first `from`, which must be there.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

}  // namespace ghostrank::test
