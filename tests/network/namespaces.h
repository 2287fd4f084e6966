// A test with its own lab (tests/lab/lab.h); skipped when none can be made.
#pragma once

#include <memory>

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

}  // namespace ghostrank::testing
