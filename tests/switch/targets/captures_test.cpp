// Plays the captures of tests/switch/captures on every target: each port's output equals, byte for
// byte and in order, the output of the model that made them. Targets that are missing are skipped
// by name.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/wait.h>
#include <vector>

#include <gtest/gtest.h>

#include "switch/ports/pcap_file.h"

namespace ghostrank::switchml {
namespace {

namespace fs = std::filesystem;

using Frames = std::vector<std::vector<std::byte>>;

Frames frames_of(const fs::path& path) {
  Frames all;
  PcapReader reader(path.string());
  while (const auto frame = reader.next())
    all.emplace_back(frame->bytes.begin(), frame->bytes.end());
  return all;
}

std::vector<std::string> captures() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(GHOSTRANK_SWITCH_CAPTURES)) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// "dpdk_as_written": the P4 program without the loader's shortenings.
bool present(const std::string& target) {
  if (target.starts_with("dpdk"))
    return fs::exists(fs::path(GHOSTRANK_BINARY).parent_path() / "ghostrank-dpdk");
  if (target == "bmv2")
    return std::system(
               "command -v simple_switch >/dev/null && command -v simple_switch_CLI >/dev/null && "
               "command -v p4c-bm2-ss >/dev/null") == 0;
  return true;
}

class SwitchCaptures : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

std::string flags_of(const std::string& target) {
  return target == "dpdk_as_written" ? "dpdk --as-written" : target;
}

TEST_P(SwitchCaptures, LeaveAsTheModelSays) {
  const auto& [target, name] = GetParam();
  if (name.starts_with("roce") && target != "compiled")
    GTEST_SKIP() << "target " << target << " does not sum packets over RoCEv2";
  if (!present(target)) GTEST_SKIP() << "target " << target << " is not on this machine";
  const fs::path in = fs::path(GHOSTRANK_SWITCH_CAPTURES) / name;
  const fs::path out =
      fs::path(testing::TempDir()) / (target + "." + name + "." + std::to_string(getpid()));
  fs::create_directories(out);
  std::string ports;
  int count = 0;
  for (; fs::exists(in / ("in" + std::to_string(count) + ".pcap")); ++count) {
    const std::string p = std::to_string(count) + ".pcap";
    ports +=
        (count == 0 ? "" : ",") + (in / ("in" + p)).string() + ":" + (out / ("out" + p)).string();
  }
  const std::string log = (out / "log").string();
  const int status = std::system(
      (std::string(GHOSTRANK_BINARY) + " switch run --in-order --target " + flags_of(target) +
       " --plan " + (in / "plan.yaml").string() + " --ports " + ports + " >" + log + " 2>&1")
          .c_str());
  std::ifstream said(log);
  ASSERT_EQ(WEXITSTATUS(status), 0) << std::string(std::istreambuf_iterator<char>(said), {});
  ASSERT_GE(count, 2);
  for (int p = 0; p < count; ++p) {
    const std::string file = "out" + std::to_string(p) + ".pcap";
    const Frames expected = frames_of(in / file), left = frames_of(out / file);
    EXPECT_EQ(left.size(), expected.size()) << "port " << p;
    EXPECT_TRUE(left == expected) << "port " << p;
  }
  fs::remove_all(out);
}

// The plan, the captures and the outputs are all kept.
TEST(SwitchRun, RefusesToWriteWhatItReadsAndOneFileTwice) {
  const fs::path in = fs::path(GHOSTRANK_SWITCH_CAPTURES) / "four_workers";
  const fs::path out = fs::path(testing::TempDir()) / ("files." + std::to_string(getpid()));
  fs::create_directories(out);
  const std::vector<std::string> files = {"plan.yaml", "in0.pcap", "in1.pcap", "in2.pcap",
                                          "in3.pcap"};
  for (const std::string& file : files) fs::copy_file(in / file, out / file);
  const auto contents = [](const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  struct Case {
    std::string out, flags, why;
  };
  for (const Case& c :
       {Case{"out.pcap", "--json in1.pcap", "in1.pcap: it is an input of this command"},
        Case{"out.pcap", "--json plan.yaml", "plan.yaml: it is an input of this command"},
        Case{"plan.yaml", "", "plan.yaml: it is an input of this command"},
        Case{"out.pcap", "--json out.pcap", "--json and --ports both write out.pcap"}}) {
    const int status = std::system(("cd " + out.string() + " && " + GHOSTRANK_BINARY +
                                    " switch run --plan plan.yaml --ports in0.pcap:" + c.out +
                                    ",in1.pcap:,in2.pcap:,in3.pcap: " + c.flags + " >log 2>&1")
                                       .c_str());
    const std::string said = contents(out / "log");
    EXPECT_EQ(WEXITSTATUS(status), 2) << said;
    EXPECT_NE(said.find(c.why), std::string::npos) << said;
    EXPECT_FALSE(fs::exists(out / "out.pcap"));
    for (const std::string& file : files)
      EXPECT_TRUE(contents(in / file) == contents(out / file)) << file;
  }
  fs::remove_all(out);
}

// Half of a job's entries would be another job. The shell's file size limit stands in for a full
// disk.
TEST(SwitchEntries, ThatCannotBeWrittenAreSaidAndNotPlayed) {
  if (!present("dpdk")) GTEST_SKIP() << "built without DPDK";
  const fs::path in = fs::path(GHOSTRANK_SWITCH_CAPTURES) / "four_workers";
  const fs::path out = fs::path(testing::TempDir()) / ("entries." + std::to_string(getpid()));
  fs::create_directories(out / "tmp");
  std::string ports;
  for (int p = 0; p < 4; ++p)
    ports +=
        (p == 0 ? "" : ",") + (in / ("in" + std::to_string(p) + ".pcap")).string() + ":/dev/null";
  const std::string log = (out / "log").string();
  const int status =
      std::system(("trap '' XFSZ; ulimit -f 1; TMPDIR=" + (out / "tmp").string() + " exec " +
                   GHOSTRANK_BINARY + " switch run --target dpdk --plan " +
                   (in / "plan.yaml").string() + " --ports " + ports + " >" + log + " 2>&1")
                      .c_str());
  std::ifstream file(log);
  const std::string said(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(WEXITSTATUS(status), 3) << said;
  EXPECT_NE(said.find("cannot be written: File too large"), std::string::npos) << said;
  EXPECT_TRUE(fs::is_empty(out / "tmp"));
  fs::remove_all(out);
}

INSTANTIATE_TEST_SUITE_P(
    Targets, SwitchCaptures,
    testing::Combine(testing::Values("compiled", "dpdk", "dpdk_as_written", "bmv2"),
                     testing::ValuesIn(captures())),
    [](const auto& tested) { return std::get<0>(tested.param) + "_" + std::get<1>(tested.param); });

}  // namespace
}  // namespace ghostrank::switchml
