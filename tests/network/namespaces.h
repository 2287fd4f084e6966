// A test with its own lab (tests/lab/lab.h); skipped when none can be made.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/lab/lab.h"

namespace ghostrank::testing {

class Namespaces : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Lab::possible()) GTEST_SKIP() << "needs root and network namespaces";
    lab = std::make_unique<Lab>();
  }
  std::unique_ptr<Lab> lab;
};

// Starts a process on each of the kHosts hosts.
inline std::vector<pid_t> start_hosts(Lab& lab, const std::string& arguments) {
  std::vector<pid_t> hosts;
  for (int h = 0; h < kHosts; ++h) hosts.push_back(lab.start_host(h, kHosts, arguments));
  return hosts;
}

}  // namespace ghostrank::testing
