// Real packets through a real switch, whatever becomes of them: no element of any sum is wrong.
// Every number of workers, trouble and target takes minutes, so it is played where
// GHOSTRANK_SWITCH_PROOF is set, and prints a row of each; switch_test.cpp plays some with four.
#include <cstdio>

#include "tests/network/switched_hosts.h"

namespace ghostrank {
namespace {

using nlohmann::json;
using testing::ForeignSwitch;
using testing::shell;

struct Trouble {
  const char* name;
  double loss, duplicates, reordering;  // shares; losses at the ranks, and at every port each way
  bool restarts;
};

constexpr Trouble kTroubles[]{
    {"none", 0, 0, 0, false},
    {"0.1 % lost each way", 0.001, 0, 0, false},
    {"1 % lost each way", 0.01, 0, 0, false},
    {"5 % lost each way", 0.05, 0, 0, false},
    {"10 % doubled, 1 % lost", 0.01, 0.1, 0, false},
    {"10 % late, 10 % doubled, 1 % lost", 0.01, 0.1, 0.1, false},
    {"the switch killed and started again, 1 % lost", 0.01, 0.01, 0.01, true},
};

// bmv2 takes some thousand packets a second, so that few workers play it, slowly.
constexpr int kMostOnBmv2 = 8;

std::string pace_of(const std::string& target, const char* rate) {
  if (target == "bmv2") return " -s switch.timeout_us=200000 -s cluster.nic.rate=10Mbps";
  return " -s switch.timeout_us=5000 -s cluster.nic.rate=" + std::string(rate);
}

class SwitchProof : public ForeignSwitch {
 protected:
  static std::vector<std::string> targets_for(int workers) {
    std::vector<std::string> all = testing::targets();
    if (workers <= kMostOnBmv2 && testing::has_bmv2()) all.emplace_back("bmv2");
    return all;
  }

  std::string settings(const Trouble& t) const {
    const auto set = [](const char* key, double value) {
      return " -s " + std::string(key) + "=" + std::to_string(value);
    };
    return set("fabric.packets.loss", t.loss) + set("fabric.packets.duplicates", t.duplicates) +
           set("fabric.packets.reordering", t.reordering);
  }

  json play_on(const std::string& target, const Trouble& t) {
    if (!t.restarts)
      return expect_exact(job("float32", settings(t) + pace_of(target, "200Mbps") +
                                             " -s switch.target=" + target +
                                             " -s switch.loss=" + std::to_string(t.loss)));
    pid_t sw = start_switch(target, true);
    const pid_t run =
        lab->start(job("float32", settings(t) + pace_of(target, "50Mbps") +
                                      " -s switch.target=external -s switch.mac=02:00:00:00:ff:01 "
                                      "-s switch.fallback_after_us=20000000 -s run.iterations=40"),
                   "run");
    for (await_sums(run); lab->running(run); await_sums(run)) {
      lab->stop(sw);
      sw = start_switch(target, true);
    }
    const json result = expect_exact_end(run);
    lab->stop(sw);
    EXPECT_GT(result["switch_troubles"]["restarts"], 0) << "the run was over too soon";
    EXPECT_EQ(result["switch_troubles"]["fallbacks"], 0);
    return result;
  }

  void play(int workers, const std::string& target, const Trouble& trouble) {
    SCOPED_TRACE(std::to_string(workers) + " workers, " + target + ", " + trouble.name);
    const json result = play_on(target, trouble);
    if (!result.contains("packets")) return;
    const json& packets = result["packets"];
    // Losses of the packets that ranks send, and of those that come from the switch.
    const double expected = 2 * trouble.loss * packets["sent"].get<double>();
    EXPECT_GE(packets["lost_on_purpose"], expected > 20 ? 1 : 0);
    EXPECT_LE(packets["lost_on_purpose"], 2 * expected + 20);
    EXPECT_EQ(packets["delayed_on_purpose"] > 0, trouble.reordering > 0);
    std::printf("| %d | %s | %s | %s | %s |\n", workers, target.c_str(), trouble.name,
                packets["sent"].dump().c_str(), result["verify"]["wrong_elements"].dump().c_str());
    std::fflush(stdout);
  }
};

TEST_F(SwitchProof, LeavesNoWrongElementWhateverBecomesOfPackets) {
  const std::string& wanted = testing::wanted_proof();
  if (wanted.empty())
    GTEST_SKIP() << "takes minutes; set GHOSTRANK_SWITCH_PROOF=1, or to the name of one target";
  for (const int workers : {2, 4, 8, 16, 32}) {
    make_lab(workers);
    turn_offloads_off();
    for (const std::string& target : targets_for(workers))
      if (wanted == "1" || wanted == target)
        for (const Trouble& trouble : kTroubles) play(workers, target, trouble);
  }
}

}  // namespace
}  // namespace ghostrank
