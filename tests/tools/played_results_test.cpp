// Results of played jobs: what `diagnose` takes from a result's config alone is what `compare`
// takes from the job itself, and the result is read back as it was.
#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "profiles/load/load.h"
#include "profiles/planners/plan.h"
#include "tests/tools/sample.h"
#include "tools/compare/ab/run.h"
#include "tools/diagnosis/diagnosis.h"
#include "tools/diagnosis/setting.h"
#include "tools/quiet_play.h"
#include "tools/report/page/result_page.h"

namespace ghostrank {
namespace {

const std::string kJob = GHOSTRANK_SOURCE_DIR "/tests/tools/transcripts/small.yaml";

TEST(PlayedResults, AreJudgedAsCompareJudgesThem) {
  std::set<std::string> words;
  for (const std::vector<std::string>& settings : std::vector<std::vector<std::string>>{
           {},
           {"cluster.nic.rate=100Mbps"},
           {"cluster.nic.rate=100Mbps", "fabric.framing=rocev2"},
           {"cluster.nic.rate=2Gbps", "fabric.framing=tcp", "fabric.packets.mtu=1500"},
           {"cluster.nic.latency_us=5000"},
           {"compression.method=adaq"},
           {"cluster.nodes=4", "cluster.topology.kind=leaf_spine", "cluster.topology.leaves=2",
            "cluster.topology.oversubscription=16", "cluster.nic.rate=1Gbps"},
           {"collectives.allreduce=parameter_server", "servers.count=1",
            "servers.nic.rate=200Mbps"},
           {"collectives.allreduce=parameter_server", "servers.count=2",
            "servers.placement=colocated", "servers.memory_GBps=0.05"},
           {"collectives.allreduce=atp", "cluster.nodes=8", "servers.count=1",
            "servers.nic.rate=1Gbps"},
           {"collectives.allreduce=switchml", "switch.packet_rate_mpps=0.2"}}) {
    const LoadedJob job = load_job(kJob, settings);
    const Result result = play_quietly(job, plan_workload(job.spec));
    const test::Scratch scratch;
    const std::string file = scratch / "r.json", what = settings.empty() ? "" : settings.front();
    test::put(file, result_json(result));
    const AbRun compared = read_ab_run(file, job.spec);
    const StoredRun run = read_run(file);
    EXPECT_EQ(diagnose(run).bottleneck, compared.bottleneck) << what;
    EXPECT_EQ(nic_setting(run).all_nodes, nic_setting(job.spec).all_nodes) << what;
    double busiest = 0;
    for (const NicUse& use : nic_uses(run.result.nics, nic_setting(run), compared.step_seconds, 0))
      if (!use.helper) busiest = std::max(busiest, use.busy.value_or(0));
    EXPECT_DOUBLE_EQ(busiest, compared.nic_busy.value_or(0)) << what;
    EXPECT_EQ(run.stored.pairs.size(), run.result.pairs.size()) << what;
    EXPECT_FALSE(result_page({run}).empty()) << what;
    words.insert(compared.bottleneck);
  }
  EXPECT_EQ(words, (std::set<std::string>{"compute", "latency", "link", "switch"}));
}

}  // namespace
}  // namespace ghostrank
