// `jobs` of a job file: how each job is loaded, and the texts that users read when it is wrong.
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiles/load/load.h"
#include "profiles/planners/plan.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

using test::Folder;

const std::string kJob =
    "schema: ghostrank/job/1\n"
    "model: resnet50\n"
    "device: a100-sxm-80gb\n"
    "cluster: {nodes: 64}\n"
    "parallel: {framework: ddp, micro_batch: 64}\n"
    "run: {iterations: 9}\n";

std::string outer(const std::string& jobs, const std::string& more = "") {
  return "cluster: {nodes: 8, gpus_per_node: 2, nics_per_node: 1}\n"
         "run: {iterations: 3}\n" +
         more + "jobs:\n" + jobs;
}

class JobsInAFile : public ::testing::Test {
 protected:
  LoadedJob load(const std::string& text, const std::vector<std::string>& overrides = {}) const {
    return load_job(folder_.write("both.yaml", text), overrides);
  }
  // The text of the error, without the folder's path.
  std::string error(const std::string& text) const {
    std::string all = test::error_of([&] { load(text); });
    const std::string root = folder_.path("");
    for (std::size_t at; (at = all.find(root)) != std::string::npos;) all.erase(at, root.size());
    return all;
  }

  void SetUp() override { folder_.write("a.yaml", kJob); }
  Folder folder_;
};

TEST_F(JobsInAFile, AreLoadedForTheirNodesOfTheOuterCluster) {
  const LoadedJob both = load(outer("- {name: a, file: a.yaml, nodes: '0-1,5'}\n"
                                    "- {name: b, file: a.yaml, nodes: [7, 3-4]}\n"),
                              {"parallel.micro_batch=32"});
  const JobSpec& spec = both.spec;
  ASSERT_EQ(spec.jobs.size(), 2u);
  EXPECT_EQ(spec.run.iterations, 3);
  for (const JobOnNodes& one : spec.jobs) {
    EXPECT_EQ(one.job->cluster.nodes, 3);
    EXPECT_EQ(one.job->cluster.gpus_per_node, 2);
    EXPECT_EQ(one.job->run.iterations, 3);
    EXPECT_EQ(one.job->parallel.micro_batch, 32);  // an override is for all jobs
  }
  const Workload workload = plan_workload(spec);
  EXPECT_EQ(workload.ranks, 12);
  EXPECT_EQ(workload.group_names, (std::vector<std::string>{"a/dp", "b/dp"}));
  const int nodes[] = {0, 0, 1, 1, 5, 5, 7, 7, 3, 3, 4, 4};
  for (int rank = 0; rank < 12; ++rank)
    EXPECT_EQ(spec.cluster.node_of(WorldRank(rank)), Node(nodes[rank]));
  EXPECT_EQ(spec.notes.front(),
            "job a: its own cluster, run are not used: all jobs have those beside jobs");
}

// The config of a result is a job file that needs no other.
TEST_F(JobsInAFile, AreInPlaceInTheConfigOfAResult) {
  const LoadedJob both =
      load(outer("- {name: a, file: a.yaml, nodes: 0-3}\n- {name: b, file: a.yaml, nodes: 6}\n"));
  const Folder elsewhere;
  const LoadedJob again = load_job(elsewhere.write("config.json", both.config_json), {});
  EXPECT_EQ(again.config_json, both.config_json);
  const Workload before = plan_workload(both.spec), after = plan_workload(again.spec);
  EXPECT_EQ(before.group_names, after.group_names);
  ASSERT_FALSE(before.roles.empty());
  ASSERT_EQ(before.roles.size(), after.roles.size());
  for (std::size_t r = 0; r < before.roles.size(); ++r) {
    const std::vector<OpList>& was = before.roles[r].iterations.back().streams;
    const std::vector<OpList>& is = after.roles[r].iterations.back().streams;
    ASSERT_EQ(was.size(), is.size());
    for (std::size_t s = 0; s < was.size(); ++s) {
      ASSERT_EQ(was[s].size(), is[s].size());
      for (std::size_t i = 0; i < was[s].size(); ++i) EXPECT_EQ(was[s][i], is[s][i]);
    }
  }
}

TEST_F(JobsInAFile, HaveNodesOfTheirOwn) {
  EXPECT_EQ(error(outer("- {name: a, file: a.yaml, nodes: 0-3}\n"
                        "- {name: b, file: a.yaml, nodes: '3-5'}\n")),
            "both.yaml:5:34: jobs: node 3 of b is one of a (both.yaml:4:34); a node has one job");
  EXPECT_EQ(error(outer("- {name: a, file: a.yaml, nodes: 5-8}\n")),
            "both.yaml:4:34: jobs: nodes of a: '5-8' names no nodes of the cluster, which has 0-7; "
            "write 0-7, '0-3,8', or a list of such in the order of the ranks");
  EXPECT_EQ(error(outer("- {name: a, file: a.yaml, nodes: [1, 0-2]}\n")),
            "both.yaml:4:34: jobs: a has node 1 twice");
  EXPECT_EQ(error(outer("- {name: a, file: a.yaml, nodes: []}\n")),
            "both.yaml:4:34: jobs: a has no nodes; name one at least");
}

TEST_F(JobsInAFile, HaveNamesAndFiles) {
  EXPECT_EQ(error(outer("- {name: a/b, file: a.yaml, nodes: 0}\n")),
            "both.yaml:4:10: jobs: 'a/b' is no name; write letters, digits, '_' and '-'");
  EXPECT_EQ(error(outer("- {name: a, file: a.yaml, nodes: 0}\n"
                        "- {name: a, file: a.yaml, nodes: 1}\n")),
            "both.yaml:5:10: jobs: two are called a; give each its own name");
  EXPECT_EQ(error(outer("- {name: a, nodes: 0}\n")).substr(0, 33),
            "both.yaml:4:3: job in jobs has no");
  EXPECT_EQ(error(outer("- {name: a, file: none.yaml, nodes: 0}\n")).substr(0, 72),
            "both.yaml:4:19: jobs: none.yaml: there is no such file; give the path of");
  folder_.write("nested.yaml", outer("- {name: a, file: a.yaml, nodes: 0}\n"));
  EXPECT_EQ(error(outer("- {name: a, file: nested.yaml, nodes: 0}\n")),
            "nested.yaml:3:1: jobs: one of several jobs has no jobs of its own; name them in "
            "both.yaml");
  EXPECT_EQ(error(outer("- {name: a, file: {jobs: []}, nodes: 0}\n")),
            "both.yaml:4:20: jobs: one of several jobs has no jobs of its own; name them in "
            "both.yaml");
  EXPECT_NE(
      error(outer("- {name: a, file: a.yaml, nodes: 0-1}\n", "scale: {mode: slice, nodes: 0-1}\n"))
          .find("scale.mode: slice is of one job; leave out jobs"),
      std::string::npos);
  EXPECT_EQ(error(outer("- {name: a, file: [a.yaml], nodes: 0}\n")),
            "both.yaml:4:19: jobs: file of a is a list; write the path of a job file, or a mapping "
            "with its keys");
}

const std::string kServed =
    kJob + "collectives: {library: openmpi-4.1, allreduce: generic/parameter_server}\n";

TEST_F(JobsInAFile, HaveLibrariesServersAndCompressionOfTheirOwn) {
  folder_.write("b.yaml", kServed + "servers: {count: 2, cores: 4}\n");
  folder_.write("c.yaml", kJob +
                              "collectives: {library: nccl-2.28}\n"
                              "compression: {method: topk, ratio: 0.01}\n"
                              "tensors: {density: 0.1}\n");
  const LoadedJob all =
      load(outer("- {name: a, file: a.yaml, nodes: 0-1}\n"
                 "- {name: b, file: b.yaml, nodes: 2-3}\n"
                 "- {name: c, file: c.yaml, nodes: 4-6}\n",
                 "fabric: {kind: virtual, packets: {mtu: 1500}}\n"));
  const auto of = [&](std::size_t job) -> const JobSpec& { return *all.spec.jobs[job].job; };
  EXPECT_EQ(of(0).collectives.library, "generic");
  EXPECT_EQ(of(1).collectives.algorithm(Func::all_reduce), "generic/parameter_server");
  EXPECT_EQ(of(2).collectives.library, "nccl-2.28");
  EXPECT_FALSE(of(0).compression || of(1).compression);
  EXPECT_EQ(of(2).compression->method->name, "topk");
  EXPECT_EQ(of(2).tensors->density, 0.1);
  EXPECT_EQ(all.spec.cluster.all_nodes(), 8 + 2);
  EXPECT_EQ(all.spec.cluster.servers.cores, 4);
  EXPECT_EQ(all.spec.fabric.packets.mtu, 1500);
  const LoadedJob again = load_job(folder_.write("config.json", all.config_json), {});
  EXPECT_EQ(again.config_json, all.config_json);
  const Workload workload = plan_workload(all.spec);
  EXPECT_TRUE(workload.jobs[1].compressed.empty());
  EXPECT_FALSE(workload.jobs[2].compressed.empty());
}

// A job's own plugins, beside its file, are loaded with those beside `jobs`; one that both name is
// loaded once. The config is played from the folder of the outer file.
TEST_F(JobsInAFile, HavePluginsOfTheirOwn) {
  std::filesystem::create_directory(folder_.path("sub"));
  std::filesystem::copy_file(GHOSTRANK_EXAMPLE_PLUGIN, folder_.path("sub/ring.so"));
  std::filesystem::copy_file(GHOSTRANK_ROUTING_PLUGIN, folder_.path("routing.so"));
  folder_.write("sub/b.yaml",
                kJob + "collectives: {plugins: [ring.so], allreduce: mine/two-way-ring}\n");
  const auto config = [&](const std::string& plugins, const std::vector<std::string>& overrides) {
    const LoadedJob both = load(outer("- {name: a, file: a.yaml, nodes: 0}\n"
                                      "- {name: b, file: sub/b.yaml, nodes: 1-2}\n",
                                      plugins + "fabric: {kind: virtual}\n"),
                                overrides);
    EXPECT_EQ(both.spec.jobs[1].job->collectives.algorithm(Func::all_reduce), "mine/two-way-ring");
    return both.config_json;
  };
  const std::vector<std::string> routed = {
      "cluster.topology={kind: leaf_spine, leaves: 2, routing: by-source}"};
  for (const std::string& first :
       {config("", {}), config("collectives: {plugins: [routing.so]}\n", routed),
        config("collectives: {plugins: [sub/ring.so, routing.so]}\n", routed)}) {
    const LoadedJob again = load_job(folder_.write("config.json", first), {});
    EXPECT_EQ(again.config_json, first);
  }
}

TEST_F(JobsInAFile, AgreeOnTheMachinesThatTheyShare) {
  folder_.write("b.yaml", kServed + "servers: {count: 2, cores: 4}\n");
  folder_.write("c.yaml", kServed + "servers: {count: 1, placement: colocated}\n");
  const std::string jobs =
      "- {name: a, file: a.yaml, nodes: 0}\n"
      "- {name: b, file: b.yaml, nodes: 1}\n"
      "- {name: c, file: c.yaml, nodes: 2}\n";
  EXPECT_EQ(error(outer(jobs)),
            "c.yaml: servers.cores is 8 in job c and 4 in b (b.yaml:8:28); both use the same "
            "machines: give it once, beside jobs");
  folder_.write("c.yaml", kServed + "servers: {count: 1, placement: colocated, cores: 4}\n");
  EXPECT_EQ(load(outer(jobs)).spec.cluster.all_nodes(), 8 + 2);
  const std::string sharp = kJob + "collectives: {allreduce: sharp}\n";
  folder_.write("b.yaml", sharp + "switch: {trees: 1}\n");
  folder_.write("c.yaml", sharp + "switch: {trees: 2}\n");
  EXPECT_EQ(error(outer(jobs)),
            "c.yaml:8:17: switch.trees is 2 in job c and 1 in b (b.yaml:8:17); both use the same "
            "machines: give it once, beside jobs");
}

// What jobs must agree on stands beside them, also next to one that has no use for it.
TEST_F(JobsInAFile, TakeWhatOnlySomeOfThemUse) {
  folder_.write("b.yaml", kJob + "collectives: {allreduce: sharp}\nswitch: {trees: 2}\n");
  folder_.write("c.yaml",
                "model: resnet50\ndevice: a100-sxm-80gb\nparallel: {framework: byteps}\n"
                "servers: {count: 1}\n");
  const std::string jobs =
      "- {name: b, file: b.yaml, nodes: 1}\n"
      "- {name: c, file: c.yaml, nodes: 2}\n";
  EXPECT_EQ(error(outer(jobs)), "");
  const LoadedJob both =
      load(outer(jobs, "switch: {memory_slots: 600}\nservers: {optimizer_GBps: 5}\n"));
  EXPECT_EQ(both.spec.notes.back(),
            "job c: no effect where no collective is played by switchml or atp or "
            "omnireduce_switch: switch.memory_slots");
}

TEST_F(JobsInAFile, RefuseKeysOfTheFabricThatMeanNothingToAnyOfThem) {
  EXPECT_EQ(error(outer("- {name: a, file: a.yaml, nodes: 0}\n",
                        "fabric: {kind: virtual, packets: {loss: 0.001}}\n")),
            "both.yaml:3:41: fabric.packets.loss means nothing here: no collective is played by "
            "switchml or atp or omnireduce or omnireduce_switch; name one (collectives: "
            "{allreduce: switchml}), or leave it out");
}

TEST_F(JobsInAFile, RefuseWhatOnlyAJobAloneMayHave) {
  const std::string jobs = "- {name: a, file: b.yaml, nodes: 0}\n";
  folder_.write("b.yaml", kJob + "compression: {method: topk, ratio: 0.01, memory: residual}\n");
  EXPECT_EQ(error("cluster: {nodes: 8}\nrun: {verify: true}\njobs:\n" + jobs),
            "both.yaml:2:15: run.verify: job a carries from step to step what its compression "
            "leaves out, which is verified for a job alone; use compression.memory: none, or do "
            "not verify");
  folder_.write("b.yaml", kJob + "training: {task: logistic}\n");
  EXPECT_EQ(error(outer(jobs)),
            "b.yaml:7:18: training.task: job a has it, and only a job that has the fabric for "
            "itself may; leave it out");
  EXPECT_EQ(error(outer(jobs, "fabric: {kind: ofi}\n")),
            "both.yaml:3:16: fabric.kind: ofi does not play several jobs; use memory or virtual");
  EXPECT_EQ(error("run: {iterations: 3}\njobs: [{name: a, file: a.yaml, nodes: 0}]\n"),
            "both.yaml:2:7: jobs: the cluster has no number of nodes; add cluster.nodes, of which "
            "each job has some");
}

// ---- Background ----

const std::string kTwoJobs =
    "- {name: a, file: a.yaml, nodes: '0-1,5'}\n"
    "- {name: b, file: a.yaml, nodes: 3}\n";

TEST_F(JobsInAFile, HaveBackgroundOfTheirOwnAndBesideThem) {
  folder_.write("b.yaml", kJob + "background: [{pattern: permutation, rate: 1Gbps}]\n");
  const LoadedJob all =
      load(outer("- {name: a, file: a.yaml, nodes: '0-1,5'}\n"
                 "- {name: b, file: b.yaml, nodes: [7, 3]}\n",
                 "background: [{pattern: incast, bytes: 1000000, every: 2}]\n"));
  ASSERT_EQ(all.spec.jobs.size(), 3u);
  EXPECT_TRUE(all.spec.jobs[0].job->background.empty());
  EXPECT_EQ(all.spec.jobs[1].job->background.size(), 1u);
  EXPECT_EQ(all.spec.jobs[2].name, "background");
  EXPECT_EQ(all.spec.jobs[2].nodes, (std::vector<Node>{Node(2), Node(4), Node(6)}));
  EXPECT_EQ(all.spec.jobs[2].job->run.iterations, 3);
  const Workload workload = plan_workload(all.spec);
  EXPECT_EQ(workload.ranks, 2 * 8);
  EXPECT_EQ(workload.group_names,
            (std::vector<std::string>{"a/dp", "b/dp", "b/permutation", "background/incast"}));
  EXPECT_EQ(workload.jobs[2].cycle, 2u);  // every: 2
  const Group& incast = workload.groups.back();
  EXPECT_EQ(incast.members, (std::vector<WorldRank>{WorldRank(10), WorldRank(12), WorldRank(14)}));
  EXPECT_EQ(all.spec.cluster.node_of(WorldRank(10)), Node(2));
  const LoadedJob again = load_job(folder_.write("config.json", all.config_json), {});
  EXPECT_EQ(again.config_json, all.config_json);
  EXPECT_EQ(again.spec.background.size(), 1u);
}

// A step of background beside the jobs takes 1 ms, or longer if its bytes do so at their rate.
TEST_F(JobsInAFile, HaveStepsBesideThemThatKeepTheRate) {
  const auto step = [&](const std::string& more) {
    const Workload workload =
        plan_workload(load(outer(kTwoJobs, "background: [{pattern: permutation, " + more +
                                               "}, {pattern: bisection, rate: 8Gbps}]\n"))
                          .spec);
    const Program& steady = workload.roles.back().iterations.back();
    std::vector<std::uint64_t> sent;  // by pattern
    for (const OpList& stream : steady.streams) {
      std::uint64_t bytes = 0;
      for (const Op& op : stream)
        if (op.kind == Op::Kind::send) bytes += op.count;
      if (bytes > 0) sent.push_back(bytes);
    }
    return std::pair{steady.streams[0].front().duration, sent};
  };
  using Bytes = std::vector<std::uint64_t>;
  EXPECT_EQ(step("rate: 4Gbps"), (std::pair{kPicosPerMilli, Bytes{500'000, 1'000'000}}));
  EXPECT_EQ(step("bytes: 9000"), (std::pair{kPicosPerMilli, Bytes{9000, 1'000'000}}));
  EXPECT_EQ(step("bytes: 1000000, rate: 4Gbps"),
            (std::pair{2 * kPicosPerMilli, Bytes{1'000'000, 2'000'000}}));
}

TEST_F(JobsInAFile, RefuseBackgroundThatNobodyCouldPlay) {
  const auto beside = [](const std::string& background) {
    return outer(kTwoJobs, "background: [" + background + "]\n");
  };
  EXPECT_EQ(error(beside("{pattern: checkpoint}")),
            "both.yaml:3:14: background of the file with jobs: pattern: checkpoint goes to storage "
            "nodes, and several jobs have none; use incast, permutation or bisection, or leave it "
            "out");
  folder_.write("b.yaml", kJob + "background: [{pattern: data}]\n");
  EXPECT_EQ(error(outer("- {name: a, file: b.yaml, nodes: 0}\n")),
            "b.yaml:7:14: background of job a: pattern: data goes to storage nodes, and several "
            "jobs have none; use incast, permutation or bisection, or leave it out");
  const std::string permutation = "background: [{pattern: permutation, bytes: 1}]\n";
  for (const auto& [nodes, there] : {std::pair{"0-7", "is none"}, {"1-7", "is one"}})
    EXPECT_EQ(
        error(outer("- {name: a, file: a.yaml, nodes: " + std::string(nodes) + "}\n", permutation)),
        "both.yaml:3:13: background: beside jobs it runs among the nodes that no job has, "
        "and there " +
            std::string(there) +
            "; raise cluster.nodes by two or more, or put background into a job's file, "
            "which plays it among that job's nodes");
  EXPECT_EQ(error(outer("- {name: background, file: a.yaml, nodes: 0}\n", permutation)),
            "both.yaml:3:13: background: beside jobs it is called 'background' in the result, and "
            "so is a job (both.yaml:5:43); give the job another name");
  EXPECT_EQ(load(outer("- {name: background, file: a.yaml, nodes: 0}\n")).spec.jobs.size(), 1u);
  const auto plan_error = [&](const std::string& text) {
    const std::string all = test::error_of([&] { plan_workload(load(text).spec); });
    return all.substr(std::min(all.size(), all.rfind(".yaml:") + 6));
  };
  EXPECT_EQ(plan_error(outer("- {name: a, file: a.yaml, nodes: 0-4}\n",
                             "background: [{pattern: bisection, bytes: 1}]\n")),
            "3:14: pattern: bisection needs two halves and there are 3 nodes; take an even number");
  folder_.write("b.yaml", kJob + permutation);
  EXPECT_EQ(plan_error(outer("- {name: a, file: b.yaml, nodes: 0}\n")),
            "7:14: pattern: permutation goes between nodes and the job has one; give it more, by "
            "cluster.nodes or by its nodes in jobs");
}

}  // namespace
}  // namespace ghostrank
