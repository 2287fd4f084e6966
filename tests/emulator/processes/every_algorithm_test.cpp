// Every algorithm of the registry reduces real data between two processes over libfabric.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/schedule.h"
#include "tests/collectives/calls.h"
#include "tests/emulator/processes/processes.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::SmallJob;

// Jobs that together play every row of the registry; a job holds one row of each function.
std::vector<std::vector<const Algorithm*>> rows_by_job() {
  std::vector<std::vector<const Algorithm*>> jobs;
  for (const Algorithm& row : registry()) {
    if (row.ends) continue;            // agents: agents_test.cpp
    if (row.name == "nvls") continue;  // inside a node, which one process plays
    const auto takes = [&](const std::vector<const Algorithm*>& job) {
      return std::all_of(job.begin(), job.end(), [&](const Algorithm* other) {
        return other->library == row.library && other->func != row.func &&
               (other->name == "pat") == (row.name == "pat");
      });
    };
    const auto found = std::find_if(jobs.begin(), jobs.end(), takes);
    (found == jobs.end() ? jobs.emplace_back() : *found).push_back(&row);
  }
  return jobs;
}

// One pair of processes plays all of them, one after the other.
TEST(EveryAlgorithmOverLibfabric, ReducesRealDataRight) {
  const auto outcomes = testing::run_processes(
      2,
      [](const World& world) {
        const auto control = Control::meet(world);
        for (const auto& rows : rows_by_job()) {
          const std::string what = std::string(rows[0]->library) + " " + std::string(rows[0]->name);
          SmallJob job(4, rows[0]->name == "pat" ? 1 : 2, FabricKind::ofi);
          job.spec.run.verify = true;
          for (const Algorithm* row : rows) {
            testing::choose(job.spec.collectives, *row);
            if (is_ragged(row->func))
              job.collective(row->func, testing::ragged_counts(row->func, job.workload.ranks, 1001),
                             DataType::int32);
            else
              job.collective(row->func, 1001, DataType::int32);
          }
          const Result result = job.run(*control);
          EXPECT_EQ(result.interrupted, "") << what;
          if (!result.interrupted.empty()) break;
          if (world.rank != 0) continue;
          EXPECT_EQ(result.verify->wrong_elements, 0u) << what;
          testing::expect_ledger_as_planned(job, result);
        }
        control->close();
        return std::string();
      },
      std::chrono::seconds(120));
  testing::expect_all_ok(outcomes);
}

}  // namespace
}  // namespace ghostrank
