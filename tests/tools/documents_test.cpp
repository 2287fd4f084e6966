// The targets of links exist: every relative link of a Markdown file, and every source path that a
// README or a comment gives in full.
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = GHOSTRANK_SOURCE_DIR;
const char* const kRooms[] = {"collectives", "docs",  "emulator", "profiles",
                              "switch",      "tests", "tools"};

std::vector<fs::path> files_with(const std::vector<std::string>& extensions) {
  std::vector<fs::path> found{kRoot / "README.md"};
  for (const char* room : kRooms)
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / room))
      for (const std::string& extension : extensions)
        if (entry.is_regular_file() && entry.path().extension() == extension)
          found.push_back(entry.path());
  return found;
}

// Calls `check` with the first group of every match.
template <class Check>
void each_match(const std::string& text, const std::regex& pattern, const Check& check) {
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at)
    check((*at)[1].str());
}

TEST(Documents, LinkToFilesThatExist) {
  const std::regex link(R"(\]\(([^)#: ]+)(#[^)]*)?\))");
  int links = 0;
  for (const fs::path& file : files_with({".md"}))
    each_match(test::read_file(file), link, [&](const std::string& target) {
      ++links;
      EXPECT_TRUE(fs::exists(file.parent_path() / target)) << file << " links to " << target;
    });
  EXPECT_GT(links, 100);
}

TEST(Documents, NameSourceFilesThatExist) {
  const std::regex path(
      R"((?:^|[^\w./-])((?:collectives|emulator|profiles|switch|tests|tools)/[\w/]+\.(?:h|cpp|py|sh|p4))\b)");
  int named = 0;
  for (const fs::path& file : files_with({".md", ".h", ".cpp", ".txt"}))
    each_match(test::read_file(file), path, [&](const std::string& name) {
      ++named;
      EXPECT_TRUE(fs::exists(kRoot / name)) << file << " names " << name;
    });
  EXPECT_GT(named, 100);
}

}  // namespace
}  // namespace ghostrank
