// Ledgers that outgrow memory: a job that makes one, and the files it leaves on disk.
#pragma once

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <stdlib.h>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "emulator/traffic/ledger.h"
#include "tests/emulator/support.h"

namespace ghostrank::testing {

using Pairs = std::map<std::pair<int, int>, LedgerCell>;

// A temporary folder, removed by the destructor.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "ghostrank-spill-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Adds the rows of a ledger's file to `pairs`.
inline void add_rows(const std::string& path, Pairs& pairs) {
  std::FILE* file = std::fopen(path.c_str(), "r");
  ASSERT_NE(file, nullptr) << path;
  char header[64] = {};
  EXPECT_EQ(std::fscanf(file, "%63s", header), 1);
  EXPECT_STREQ(header, "source_nic,target_nic,row,bytes,messages");
  int source = 0, target = 0;
  unsigned row = 0;
  unsigned long long bytes = 0, messages = 0;
  while (std::fscanf(file, "%d,%d,%u,%llu,%llu", &source, &target, &row, &bytes, &messages) == 5) {
    LedgerCell& cell = pairs[{source, target}];
    cell.bytes += bytes;
    cell.messages += messages;
  }
  EXPECT_NE(std::feof(file), 0);
  std::fclose(file);
}

// All-to-alls of the second half of the nodes, and of couples in the first. The second half's pairs
// outgrow a ledger, the first half's do not. All ranks have one role, so that a shard or process
// gets one half.
constexpr int kHalf = 1010;
constexpr int kUnevenPairs = kHalf * (kHalf - 1) + kHalf;

inline SmallJob uneven_job(FabricKind kind) {
  SmallJob job(2 * kHalf, 1, kind);
  std::vector<Group>& groups = job.workload.groups;
  groups.assign(kHalf / 2 + 1, Group{});
  for (int r = 0; r < 2 * kHalf; ++r)
    groups[static_cast<std::size_t>(std::min(r, kHalf) / 2)].members.push_back(WorldRank(r));
  return job.collective(Func::all_to_all, 16);
}

}  // namespace ghostrank::testing
