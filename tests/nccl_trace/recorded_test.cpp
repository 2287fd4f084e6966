// What NCCL sent on one GPU against what is played: the traces of recorded/. Those of 3 and 4 ranks
// hold a little of every algorithm, protocol and function (sweep.py, `recorded`), those of 2 what
// NCCL chooses where a node has two NICs.
#include <fstream>
#include <set>

#include <gtest/gtest.h>

#include "profiles/load/files/nccl_graph.h"
#include "profiles/load/files/nccl_topology.h"
#include "tests/nccl_trace/compare.h"

namespace ghostrank::nccl_trace {
namespace {

class Recorded : public testing::TestWithParam<int> {  // the number of ranks
 protected:
  void SetUp() override {
    for (int rank = 0; rank < GetParam(); ++rank) {
      const std::string name = file("trace." + std::to_string(rank));
      std::ifstream in(name);
      ASSERT_TRUE(in) << name;
      traces_.push_back(read_trace(in, name));
    }
    const std::string topology = file("topology.xml");
    machine_ = parse_nccl_topology(read_nccl_graph_file(topology, ""), topology);
  }
  static std::string file(const std::string& name) {
    return std::string(GHOSTRANK_NCCL_RECORDED) + "/" + std::to_string(GetParam()) + "/" + name;
  }

  std::vector<RankTrace> traces_;
  std::shared_ptr<const NcclMachine> machine_;
};

TEST_P(Recorded, IsWhatIsPlayed) {
  for (const Verdict& verdict : compare(traces_, machine_))
    EXPECT_EQ(verdict.difference, "") << verdict.mark;
}

TEST_P(Recorded, HasCallsOfManyKinds) {
  std::set<std::pair<std::string, Func>> seen;
  for (const RankLaunch& one : traces_.front().launches) {
    const Launch launch = parse_launch(one.mark, GetParam());
    for (const Collective& call : launch.calls) seen.emplace(launch.algorithm, call.func);
  }
  EXPECT_TRUE(seen.contains({"auto", Func::all_reduce}));
  if (GetParam() == 2) return;  // NCCL's own choice alone
  for (const auto& [algorithm, func] : {std::pair{"ring", Func::all_reduce},
                                        {"ring", Func::broadcast},
                                        {"tree", Func::all_reduce},
                                        {"pat", Func::reduce_scatter},
                                        {"auto", Func::all_gather},
                                        {"auto", Func::all_to_all_v},
                                        {"auto", Func::send_recv},
                                        {"auto", Func::all_gather_v}})
    EXPECT_TRUE(seen.contains({algorithm, func})) << algorithm << " " << name_of(func);
}

// In every launch, a byte more in the last message of one connection.
TEST_P(Recorded, DiffersWhereItIsChanged) {
  std::vector<bool> changed(traces_.front().launches.size());
  for (RankTrace& trace : traces_)
    for (std::size_t i = 0; i < changed.size(); ++i) {
      auto& sent = trace.launches[i].sent;
      if (changed[i] || sent.empty()) continue;
      ++sent.begin()->second.back();
      changed[i] = true;
    }
  const auto verdicts = compare(traces_, machine_);
  ASSERT_EQ(verdicts.size(), changed.size());
  for (std::size_t i = 0; i < changed.size(); ++i) {
    EXPECT_TRUE(changed[i]) << verdicts[i].mark;
    EXPECT_NE(verdicts[i].difference, "") << verdicts[i].mark;
  }
}

INSTANTIATE_TEST_SUITE_P(Nccl228, Recorded, testing::Values(2, 3, 4));

}  // namespace
}  // namespace ghostrank::nccl_trace
