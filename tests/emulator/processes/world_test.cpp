// The rank and size of this process from launchers' environment variables; for PMIx see
// launch_test.cpp.
#include <cstdlib>

#include <gtest/gtest.h>

#include "emulator/control/control.h"
#include "emulator/control/meet.h"
#include "emulator/control/node_list.h"
#include "profiles/error.h"

namespace ghostrank {
namespace {

using namespace std::chrono_literals;
using ::testing::Test;
using Names = std::vector<std::string>;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class Environment : public Test {
 protected:
  void SetUp() override {
    for (const char* name : {"RANK",
                             "WORLD_SIZE",
                             "MASTER_ADDR",
                             "MASTER_PORT",
                             "GHOSTRANK_PORT",
                             "GHOSTRANK_ADDRESS",
                             "GHOSTRANK_JOB_ID",
                             "GHOSTRANK_TOKEN",
                             "GHOSTRANK_TIMEOUT_S",
                             "OMPI_COMM_WORLD_RANK",
                             "OMPI_COMM_WORLD_SIZE",
                             "PMIX_NAMESPACE",
                             "PMIX_RANK",
                             "PMI_RANK",
                             "PMI_SIZE",
                             "SLURM_PROCID",
                             "SLURM_NTASKS",
                             "SLURM_NODELIST",
                             "SLURM_STEP_NODELIST",
                             "SLURM_JOB_ID",
                             "SLURM_STEP_ID",
                             "SLURM_STEP_NUM_TASKS"})
      unsetenv(name);
  }
  void TearDown() override { SetUp(); }

  static void set(const char* name, const char* value) { setenv(name, value, 1); }
  static std::string problem() {
    try {
      world_from_environment();
    } catch (const Error& e) {
      EXPECT_EQ(e.exit_code(), 2);
      return e.what();
    }
    return "";
  }
};

TEST_F(Environment, IsOneProcessByDefault) {
  const World world = world_from_environment();
  EXPECT_EQ(world.size, 1);
  EXPECT_EQ(world.rank, 0);
  EXPECT_EQ(world.job_id, "ghostrank");
}

TEST_F(Environment, IsReadCompletely) {
  set("RANK", "3");
  set("WORLD_SIZE", "4");
  set("MASTER_ADDR", "10.1.2.3");
  set("MASTER_PORT", "29500");
  set("GHOSTRANK_JOB_ID", "j");
  set("GHOSTRANK_TOKEN", "t");
  set("GHOSTRANK_TIMEOUT_S", "7");
  World world = world_from_environment();
  EXPECT_EQ(world.rank, 3);
  EXPECT_EQ(world.size, 4);
  EXPECT_EQ(world.master_address, "10.1.2.3");
  EXPECT_EQ(world.master_port, 29500);
  EXPECT_EQ(world.job_id, "j");
  EXPECT_EQ(world.token, "t");
  EXPECT_EQ(world.timeout, 7s);
  set("GHOSTRANK_PORT", "29600");
  EXPECT_EQ(world_from_environment().master_port, 29600);
  set("MASTER_ADDR", "[fe80::1]");
  world = world_from_environment();
  EXPECT_EQ(world.master_address, "fe80::1");
  EXPECT_EQ(meeting_point(world), "[fe80::1]:29600");
}

TEST_F(Environment, KnowsOpenMpiWhereRankIsNotSet) {
  set("OMPI_COMM_WORLD_RANK", "1");
  set("OMPI_COMM_WORLD_SIZE", "2");
  set("MASTER_ADDR", "10.1.2.3");
  set("GHOSTRANK_PORT", "29500");
  EXPECT_EQ(world_from_environment().rank, 1);
}

TEST_F(Environment, LeavesNoAddressUnheeded) {
  set("GHOSTRANK_ADDRESS", "nowhere9");
  try {
    world_from_environment();
    FAIL() << "an address that is none was taken";
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), 3);
    EXPECT_TRUE(contains(e.what(), "'nowhere9' is neither an interface nor an address"));
  }
  set("GHOSTRANK_ADDRESS", "127.0.0.1");
  EXPECT_EQ(world_from_environment().size, 1);
  set("RANK", "0");
  set("WORLD_SIZE", "2");
  set("MASTER_ADDR", "10.1.2.3");
  set("MASTER_PORT", "29500");
  EXPECT_TRUE(contains(problem(), "GHOSTRANK_ADDRESS is for processes that meet over PMIx"));
}

TEST_F(Environment, NamesTheVariableThatIsWrong) {
  set("RANK", "0");
  EXPECT_TRUE(contains(problem(), "RANK is set but WORLD_SIZE is not"));
  set("WORLD_SIZE", "two");
  EXPECT_TRUE(contains(problem(), "WORLD_SIZE=two is not a whole number"));
  set("WORLD_SIZE", "2");
  EXPECT_TRUE(contains(problem(), "MASTER_ADDR is not set"));
  set("MASTER_ADDR", "10.1.2.3");
  EXPECT_TRUE(contains(problem(), "MASTER_PORT is not set; set it (or GHOSTRANK_PORT)"));
  set("MASTER_PORT", "70000");
  EXPECT_TRUE(contains(problem(), "MASTER_PORT=70000"));
  set("MASTER_PORT", "29500");
  EXPECT_EQ(problem(), "");
  set("RANK", "2");
  EXPECT_TRUE(contains(problem(), "RANK=2 must be less than WORLD_SIZE=2"));
  set("RANK", "0");
  set("GHOSTRANK_TIMEOUT_S", "0");
  EXPECT_TRUE(contains(problem(), "GHOSTRANK_TIMEOUT_S=0"));
  unsetenv("GHOSTRANK_TIMEOUT_S");
  unsetenv("RANK");
  EXPECT_TRUE(contains(problem(), "WORLD_SIZE is set but RANK is not"));
}

TEST_F(Environment, SaysThatOpenMpiWithoutPmixNeedsAnAddress) {
  set("OMPI_COMM_WORLD_RANK", "1");
  set("OMPI_COMM_WORLD_SIZE", "2");
  EXPECT_EQ(problem(),
            "environment: OMPI_COMM_WORLD_SIZE is 2 but MASTER_ADDR is not set; set it to the "
            "address of process 0, or start with an mpirun that has PMIx");
}

TEST_F(Environment, ExplicitVariablesGoBeforeThoseOfALauncher) {
  set("RANK", "0");
  set("WORLD_SIZE", "1");
  set("SLURM_PROCID", "5");
  set("SLURM_NTASKS", "8");
  set("OMPI_COMM_WORLD_RANK", "1");
  EXPECT_EQ(world_from_environment().size, 1);
}

TEST_F(Environment, KnowsSlurmAndMeetsOnItsFirstNode) {
  set("SLURM_PROCID", "3");
  set("SLURM_NTASKS", "4");
  set("SLURM_NODELIST", "rack[08-10]n2,login");
  set("SLURM_JOB_ID", "4711");
  set("SLURM_STEP_ID", "2");
  World world = world_from_environment();
  EXPECT_EQ(world.rank, 3);
  EXPECT_EQ(world.size, 4);
  EXPECT_EQ(world.master_address, "rack08n2");
  EXPECT_EQ(world.master_port, 20000 + 4711 + 2 * 97);
  EXPECT_EQ(world.job_id, "slurm-4711.2");
  set("SLURM_STEP_NODELIST", "rack10n2");
  set("MASTER_PORT", "29500");
  world = world_from_environment();
  EXPECT_EQ(world.master_address, "rack10n2");
  EXPECT_EQ(world.master_port, 29500);
  set("MASTER_ADDR", "10.1.2.3");
  EXPECT_EQ(world_from_environment().master_address, "10.1.2.3");
}

TEST_F(Environment, IsOneProcessInAShellOrBatchScriptOfSlurm) {
  set("SLURM_NODELIST", "rack[08-10]n2");
  set("SLURM_NTASKS", "8");
  EXPECT_EQ(world_from_environment().size, 1);
  set("SLURM_PROCID", "0");  // #SBATCH -n 8
  EXPECT_EQ(world_from_environment().size, 1);
  unsetenv("SLURM_NTASKS");
  EXPECT_EQ(world_from_environment().size, 1);
}

TEST_F(Environment, IsTheFirstTaskInAStepOfSlurm) {
  set("SLURM_NODELIST", "rack[08-10]n2");
  set("SLURM_NTASKS", "8");
  set("SLURM_PROCID", "0");
  set("SLURM_STEP_ID", "0");
  EXPECT_EQ(world_from_environment().size, 8);
  set("SLURM_STEP_NUM_TASKS", "1");  // salloc's shell, with LaunchParameters=use_interactive_step
  EXPECT_EQ(world_from_environment().size, 1);
}

TEST_F(Environment, SaysWhatIsWrongWithSlurmsVariables) {
  set("SLURM_PROCID", "1");
  EXPECT_TRUE(contains(problem(), "SLURM_PROCID is set but SLURM_NTASKS is not"));
  set("SLURM_NTASKS", "1");
  EXPECT_TRUE(contains(problem(), "SLURM_PROCID=1 must be less than SLURM_NTASKS=1"));
  set("SLURM_NTASKS", "2");
  EXPECT_TRUE(contains(problem(), "neither SLURM_NODELIST nor MASTER_ADDR is"));
  set("SLURM_NODELIST", "node[1-");
  EXPECT_TRUE(contains(problem(), "SLURM_NODELIST=node[1- is no list of nodes"));
}

TEST_F(Environment, KnowsMpichWithAnAddress) {
  set("PMI_RANK", "1");
  set("PMI_SIZE", "2");
  EXPECT_TRUE(contains(problem(), "PMI_SIZE is 2 but MASTER_ADDR is not set"));
  set("MASTER_ADDR", "10.1.2.3");
  set("MASTER_PORT", "29500");
  EXPECT_EQ(world_from_environment().rank, 1);
}

TEST(NodeList, StandsForEveryNameInOrder) {
  EXPECT_EQ(expand_node_list("one"), (Names{"one"}));
  EXPECT_EQ(expand_node_list("b,a-1"), (Names{"b", "a-1"}));
  EXPECT_EQ(expand_node_list("node[1-3,7],login"),
            (Names{"node1", "node2", "node3", "node7", "login"}));
  EXPECT_EQ(expand_node_list("n[08-11]"), (Names{"n08", "n09", "n10", "n11"}));
  EXPECT_EQ(expand_node_list("n[9-11].site"), (Names{"n9.site", "n10.site", "n11.site"}));
  EXPECT_EQ(expand_node_list("r[0-1]n[2,4]"), (Names{"r0n2", "r0n4", "r1n2", "r1n4"}));
  EXPECT_EQ(expand_node_list("n[099-101]"), (Names{"n099", "n100", "n101"}));
}

TEST(NodeList, IsEmptyWhereTheTextIsNone) {
  for (const char* text :
       {"", ",", "a,", ",a", "a,,b", "n[", "n[]", "n[1", "n[1-]", "n[-1]", "n[3-1]", "n[a]",
        "n[1,]", "n]", "n[1]]", "n[[1]]", "n[0-99999999]", "n[0-9999]m[0-9999]"})
    EXPECT_FALSE(expand_node_list(text).has_value()) << text;
}

}  // namespace
}  // namespace ghostrank
