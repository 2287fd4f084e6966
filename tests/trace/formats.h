// What tests of single formats share.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "tests/trace/traces.h"

namespace ghostrank::test {

class Formats : public testing::Test {
 protected:
  std::string refused(const std::string& name, const std::string& text) {
    folder.write(name, text);
    return error_in(folder, [&] { played({folder.path(name)}, 4); });
  }
  Folder folder;
};

}  // namespace ghostrank::test
