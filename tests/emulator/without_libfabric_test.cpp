// A build without libfabric: the command refuses what needs it, and says what to do.
#include <array>
#include <cstdio>
#include <string>
#include <sys/wait.h>

#include <gtest/gtest.h>

namespace ghostrank {
namespace {

struct Said {
  int status = -1;
  std::string text;
};

Said command(const std::string& arguments) {
  Said said;
  std::FILE* pipe = popen((GHOSTRANK_BINARY " " + arguments + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return said;
  std::array<char, 4096> piece{};
  while (const std::size_t got = std::fread(piece.data(), 1, piece.size(), pipe))
    said.text.append(piece.data(), got);
  const int status = pclose(pipe);
  said.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return said;
}

const std::string kJob = GHOSTRANK_SOURCE_DIR "/tests/tools/transcripts/small.yaml";

TEST(WithoutLibfabric, RefusesOfiInOneLine) {
  const Said said = command("run " + kJob + " -s fabric.kind=ofi");
  EXPECT_EQ(said.status, 3) << said.text;
  EXPECT_EQ(said.text,
            "ghostrank: fabric.kind: ofi is not in this ghostrank, which was built without "
            "libfabric; install libfabric-dev and build again, or play in one process with "
            "fabric.kind=memory or virtual\n");
}

TEST(WithoutLibfabric, PlansOfiAndPlaysMemory) {
  EXPECT_EQ(command("plan " + kJob + " -s fabric.kind=ofi").status, 0);
  EXPECT_EQ(command("run " + kJob + " -s fabric.kind=virtual").status, 0);
}

TEST(WithoutLibfabric, DoctorSaysSo) {
  const Said said = command("doctor");
  EXPECT_NE(said.text.find("libfabric"), std::string::npos) << said.text;
  EXPECT_NE(said.text.find("apt-get install libfabric-dev"), std::string::npos) << said.text;
}

}  // namespace
}  // namespace ghostrank
