// Shared objects with algorithms: loaded, proved, named and played; or refused.
#include <gtest/gtest.h>

#include "collectives/agent.h"
#include "profiles/algorithms.h"
#include "profiles/error.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

std::string error_of(const std::string& path) {
  Algorithms algorithms;
  try {
    algorithms.load_plugin(path, ".");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Plugin, BringsALibraryOfItsOwn) {
  Algorithms algorithms;
  algorithms.load_plugin(GHOSTRANK_EXAMPLE_PLUGIN, ".");
  EXPECT_EQ(algorithms.libraries().back(), "mine");
  const Algorithm& row = algorithms.resolve("mine", Func::all_reduce, "auto");
  EXPECT_EQ(row.name, "two-way-ring");
  EXPECT_EQ(&algorithms.resolve("generic", Func::all_reduce, "mine/two-way-ring"), &row);
  EXPECT_EQ(algorithms.find("mine", Func::all_gather, "auto"), nullptr);
  EXPECT_FALSE(algorithms.contents().empty());
}

TEST(Plugin, ReducesRealDataRightInTheEngine) {
  Algorithms algorithms;
  algorithms.load_plugin(GHOSTRANK_EXAMPLE_PLUGIN, ".");
  testing::SmallJob job(3, 2, FabricKind::memory);
  job.spec.collectives.own = std::make_shared<const Algorithms>(std::move(algorithms));
  job.spec.collectives.library = "mine";
  job.spec.run.verify = true;
  // The broadcast is generic's: the plugin has none.
  const Result result =
      job.collective(Func::all_reduce, 1001).collective(Func::broadcast, 10).run();
  EXPECT_EQ(result.verify->checked_elements, 6066u);
  EXPECT_EQ(result.verify->wrong_elements, 0u);
}

TEST(Plugin, OfAnotherVersionIsRefusedBeforeItsRowsAreRead) {
  EXPECT_NE(error_of(GHOSTRANK_STALE_PLUGIN).find("was built against another ghostrank"),
            std::string::npos)
      << error_of(GHOSTRANK_STALE_PLUGIN);
}

TEST(Plugin, WithAWrongAlgorithmIsRefusedWithWhatTheCheckerFound) {
  const std::string error = error_of(GHOSTRANK_WRONG_PLUGIN);
  EXPECT_NE(error.find("wrong/forgetful is wrong for 2 ranks"), std::string::npos) << error;
  EXPECT_NE(error.find("ends with wrong content"), std::string::npos) << error;
}

TEST(Plugin, WithAWrongSchemeIsRefusedWithWhatTheCheckerFound) {
  const std::string error = error_of(GHOSTRANK_WRONG_SCHEME_PLUGIN);
  EXPECT_NE(error.find("wrong/careless is wrong for 1 ranks, count 1, root 0: "), std::string::npos)
      << error;
  EXPECT_NE(error.find("(seed "), std::string::npos) << error;
}

TEST(Plugin, WithARowThatIsAScheduleAndAgentsAtOnceIsRefused) {
  EXPECT_NE(error_of(GHOSTRANK_BOTH_PLUGIN)
                .find("the row 'wrong/both' needs either a make function, of schedules, or an ends "
                      "function, of agents"),
            std::string::npos)
      << error_of(GHOSTRANK_BOTH_PLUGIN);
}

TEST(Plugin, BringsASchemeWithAgents) {
  Algorithms algorithms;
  algorithms.load_plugin(GHOSTRANK_SERVER_PLUGIN, ".");
  const Algorithm& row = algorithms.resolve("mine", Func::all_reduce, "packet-server");
  EXPECT_FALSE(row.make);
  EXPECT_EQ(row.ends(5, {})->helpers().size(), 1U);
}

TEST(Plugin, ThatIsNoneIsRefused) {
  EXPECT_NE(error_of("nowhere.so").find("there is no such file"), std::string::npos);
  EXPECT_NE(error_of(GHOSTRANK_SOURCE_DIR "/README.md").find("cannot be loaded"),
            std::string::npos);
}

TEST(Plugin, LoadedTwiceIsRefusedBecauseItsNamesAreTaken) {
  Algorithms algorithms;
  algorithms.load_plugin(GHOSTRANK_EXAMPLE_PLUGIN, ".");
  EXPECT_THROW(algorithms.load_plugin(GHOSTRANK_EXAMPLE_PLUGIN, "."), Error);
}

}  // namespace
}  // namespace ghostrank
