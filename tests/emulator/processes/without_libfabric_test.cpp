// A build without libfabric: the command refuses what needs it, and says what to do.
#include <string>

#include <gtest/gtest.h>

#include "tests/shell.h"

namespace ghostrank {
namespace {

using test::Outcome;

Outcome command(const std::string& arguments) {
  return test::shell(GHOSTRANK_BINARY " " + arguments);
}

const std::string kJob = GHOSTRANK_SOURCE_DIR "/tests/tools/transcripts/small.yaml";

TEST(WithoutLibfabric, RefusesOfiInOneLine) {
  const Outcome said = command("run " + kJob + " -s fabric.kind=ofi");
  EXPECT_EQ(said.status, 3) << said.text;
  EXPECT_EQ(said.text,
            "ghostrank: fabric.kind: ofi is not in this ghostrank, which was built without "
            "libfabric; install libfabric-dev and build again, or play in one process with "
            "fabric.kind=memory or virtual\n");
}

TEST(WithoutLibfabric, PlansOfiAndPlaysInOneProcess) {
  EXPECT_EQ(command("plan " + kJob + " -s fabric.kind=ofi").status, 0);
  EXPECT_EQ(command("run " + kJob + " -s fabric.kind=virtual").status, 0);
  EXPECT_EQ(command("run " + kJob + " -s fabric.kind=memory --allow-unfaithful").status, 0);
}

TEST(WithoutLibfabric, DoctorSaysSo) {
  const Outcome said = command("doctor");
  EXPECT_NE(said.text.find("libfabric"), std::string::npos) << said.text;
  EXPECT_NE(said.text.find("apt-get install libfabric-dev"), std::string::npos) << said.text;
}

}  // namespace
}  // namespace ghostrank
