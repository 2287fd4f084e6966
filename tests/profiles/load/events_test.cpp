// The key `events`: what it gives, and what is refused, with its place.
#include "profiles/load/sections/events.h"

#include <string>

#include <gtest/gtest.h>

#include "profiles/job/switches.h"
#include "profiles/load/load.h"
#include "tests/profiles/load/texts.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

using test::kHead;
using test::load_error;
using test::load_text;

constexpr const char* kFabric =
    "cluster: {nodes: 4, gpus_per_node: 2, nics_per_node: 2, topology: {kind: leaf_spine, leaves: "
    "2, spines: 2}}\nfabric: {kind: virtual}\n";

std::vector<JobEvent> events_in(const std::string& list) {
  const LoadedJob job = load_text(kHead + kFabric + "events: " + list + "\n");
  EXPECT_TRUE(job.spec.events) << list;
  return job.spec.events ? job.spec.events->all : std::vector<JobEvent>{};
}

TEST(Events, OfEveryKindAreRead) {
  const std::vector<JobEvent> all = events_in(
      "[{at_s: 60, mark: spine3-down}, {at_s: 3, rank: 7, slow: 1.5}, {at_iteration: 2, node: 1, "
      "slow: 2, for_iterations: 3}, {at_s: 2, link: leaf0-spine1, down_s: 0.5}, {at_s: 4, link: "
      "spine0-leaf1, rate: 10Gbps, for_s: 1}]");
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[0].kind, JobEvent::Kind::mark);
  EXPECT_EQ(all[0].what, "spine3-down");
  EXPECT_EQ(all[0].at, 60 * kPicosPerSecond);
  EXPECT_EQ(all[1].kind, JobEvent::Kind::slow);
  EXPECT_EQ(all[1].ranks, std::vector{WorldRank(7)});
  EXPECT_EQ(all[1].factor, 1.5);
  EXPECT_EQ(all[1].lasts, JobEvent::kEver);
  EXPECT_EQ(all[1].what, "rank 7 x 1.5");
  EXPECT_EQ(all[2].ranks, (std::vector{WorldRank(2), WorldRank(3)}));
  EXPECT_EQ(all[2].iteration, 2u);
  EXPECT_EQ(all[2].iterations, 3u);
  EXPECT_EQ(all[2].what, "node 1 x 2 for 3 iterations");
  EXPECT_EQ(all[3].kind, JobEvent::Kind::link);
  EXPECT_EQ(all[3].lasts, kPicosPerSecond / 2);
  EXPECT_EQ(all[3].bps, 0);
  EXPECT_EQ(all[3].what, "leaf0-spine1 down for 0.5 s");
  EXPECT_EQ(all[4].bps, 10e9);
  EXPECT_EQ(all[4].what, "spine0-leaf1 at 10Gbps for 1 s");
  const LoadedJob job = load_text(kHead + kFabric);
  const SwitchGraph graph = switches_of(job.spec.cluster);
  EXPECT_EQ(cable_name(graph, all[3].cable), "leaf0-spine1");
  EXPECT_EQ(cable_name(graph, all[4].cable), "leaf1-spine0");
  EXPECT_FALSE(job.spec.events);
}

TEST(Events, ComeFromFlagsToo) {
  const LoadedJob job = load_text(kHead + kFabric, {"events=[{at_s: 1, mark: x}]"});
  ASSERT_TRUE(job.spec.events);
  EXPECT_EQ(job.spec.events->all.at(0).what, "x");
  EXPECT_NE(job.config_json.find("\"mark\": \"x\""), std::string::npos);
  EXPECT_FALSE(
      load_text(kHead + kFabric + "events: [{at_s: 1, mark: x}]\n", {"events=[]"}).spec.events);
}

TEST(Events, KillHostsOfARealFabric) {
  const std::string cluster = "cluster: {nodes: 4}\nfabric: {kind: ofi}\n";
  const LoadedJob job = load_text(kHead + cluster + "events: [{at_s: 4, host: 2, kill: true}]\n");
  ASSERT_TRUE(job.spec.events);
  EXPECT_EQ(job.spec.events->all.at(0).kind, JobEvent::Kind::kill);
  EXPECT_EQ(job.spec.events->all.at(0).host, Host(2));
  EXPECT_EQ(job.spec.events->all.at(0).what, "host 2 killed");
}

// Each with the one error that it causes; events begin in line 6.
TEST(Events, AreRefusedWithTheirPlace) {
  const auto said = [](const std::string& list) {
    return load_error(kHead + kFabric + "events: " + list + "\n");
  };
  const auto starts = [&](const std::string& list, const std::string& message) {
    const std::string error = said(list);
    EXPECT_EQ(error.substr(0, message.size()), message) << list;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  };
  EXPECT_EQ(said("[]"), "");
  starts("mark", "job.yaml:6:9: events is 'mark'");
  starts("[{mark: x}]", "job.yaml:6:10: events: no time; add at_s");
  starts("[{at_s: 1, at_iteration: 1, mark: x}]",
         "job.yaml:6:10: events: at_s and at_iteration both say when; leave one of them out");
  starts("[{at_s: -1, mark: x}]", "job.yaml:6:17: at_s is '-1'");
  starts("[{at_s: soon, mark: x}]", "job.yaml:6:17: at_s is 'soon'");
  starts("[{at_s: 1}]", "job.yaml:6:10: events: nothing happens: add mark, rank, node, link or");
  starts("[{at_s: 1, mark: ''}]", "job.yaml:6:26: events: mark: '' is no name");
  starts("[{at_s: 1, mark: x, rank: 2}]", "job.yaml:6:35: events: mark and rank in one event");
  starts("[{at_s: 1, mark: x, slow: 2}]",
         "job.yaml:6:35: events: slow means nothing to an event of a mark; leave it out");
  starts("[{at_s: 1, rank: 2}]",
         "job.yaml:6:10: events: what becomes of the rank? add slow, as in {at_s: 3, rank: 7");
  starts("[{at_s: 1, rank: 8, slow: 2}]",
         "job.yaml:6:26: events: there is no rank 8; the job trains on ranks 0 to 7");
  starts("[{at_s: 1, node: 4, slow: 2}]",
         "job.yaml:6:26: events: there is no node 4; the job trains on nodes 0 to 3");
  starts("[{at_s: 1, rank: 1, slow: 0.5}]", "job.yaml:6:35: slow is '0.5'");
  starts("[{at_s: 1, rank: 1, slow: 2, for_iterations: 1}]",
         "job.yaml:6:54: events: for_iterations beside at_s");
  starts("[{at_iteration: 1, rank: 1, slow: 2, for_s: 1}]",
         "job.yaml:6:53: events: for_s beside at_iteration");
  starts("[{at_s: 1, link: leaf0-spine9, down_s: 1}]",
         "job.yaml:6:26: events: there is no link 'leaf0-spine9'; did you mean leaf0-spine0");
  starts("[{at_s: 1, link: leaf0-spine0}]",
         "job.yaml:6:10: events: what becomes of the link? add down_s or rate");
  starts("[{at_s: 1, link: leaf0-spine0, down_s: 0}]", "job.yaml:6:48: down_s is '0'");
  starts("[{at_s: 1, link: leaf0-spine0, down_s: 1, rate: 1Gbps}]",
         "job.yaml:6:57: events: down_s and rate both say what becomes of the link");
  starts("[{at_s: 1, link: leaf0-spine0, down_s: 1, for_s: 1}]",
         "job.yaml:6:58: events: down_s and for_s both say how long; leave for_s out");
  starts("[{at_iteration: 1, link: leaf0-spine0, down_s: 1}]",
         "job.yaml:6:25: events: at_iteration means nothing to an event of a link");
  starts("[{at_s: 1, link: leaf0-spine0, rate: 90Tbps}]",
         "job.yaml:6:46: events: rate: 90000Gbps slows nothing; the link has ");
  starts("[{at_s: 1, link: leaf0-spine0, rate: 0}]", "job.yaml:6:46: events: rate: ");
  starts("[{at_s: 1, host: 0, kill: true}]",
         "job.yaml:6:26: events: fabric virtual is one process, which nothing would outlive");
  starts("[{at_s: 1, spine: 0}]", "job.yaml:6:20: unknown key 'spine'");
}

TEST(Events, OfLinksNeedLinks) {
  const std::string event = "events: [{at_s: 1, link: leaf0-spine0, down_s: 1}]\n";
  const auto starts = [&](const std::string& text, const std::string& message) {
    EXPECT_EQ(load_error(kHead + event + text).substr(0, message.size()), message);
  };
  starts(
      "",
      "job.yaml:4:26: events: there is no link 'leaf0-spine0': the nodes are joined by one ideal "
      "switch; set cluster.topology.kind");
  starts("fabric: {kind: ofi}\n",
         "job.yaml:4:26: events: links are modelled on fabrics virtual and memory; fabric ofi has "
         "its own");
  const std::string fabric = "cluster: {nodes: 4, topology: {kind: leaf_spine, leaves: 2, ";
  starts(fabric + "spines: 2, failed: [leaf0-spine0]}}\n",
         "job.yaml:4:26: events: 'leaf0-spine0' has failed before the start");
  starts(fabric + "spines: 1, uplink_rate: unlimited}}\n",
         "job.yaml:4:26: events: 'leaf0-spine0' has no rate");
}

// Ranks of several jobs are numbered one after the other; nodes are those of the cluster.
TEST(Events, OfSeveralJobsStandBesideThem) {
  const std::string jobs =
      "cluster: {nodes: 5, gpus_per_node: 2}\nfabric: {kind: virtual}\njobs:\n"
      "  - {name: a, file: {model: resnet50, device: h100-sxm, events: [{at_s: 1, mark: y}]}, "
      "nodes: 3-4}\n"
      "  - {name: b, file: {model: resnet50, device: h100-sxm}, nodes: 0}\n";
  const auto with = [&](const std::string& event) { return jobs + "events: [" + event + "]\n"; };
  const LoadedJob job = load_text(with("{at_s: 1, node: 3, slow: 2}, {at_s: 1, rank: 5, slow: 2}"));
  ASSERT_TRUE(job.spec.events);
  EXPECT_EQ(job.spec.events->all.at(0).ranks, (std::vector{WorldRank(0), WorldRank(1)}));
  EXPECT_FALSE(job.spec.jobs.at(0).job->events);
  EXPECT_NE(load_error(with("{at_s: 1, rank: 6, slow: 2}")).find("there is no rank 6"),
            std::string::npos);
  EXPECT_NE(load_error(with("{at_s: 1, node: 1, slow: 2}")).find("no job has node 1"),
            std::string::npos);
  EXPECT_NE(load_error(with("{at_iteration: 1, mark: x}")).find("has its own iterations"),
            std::string::npos);
}

}  // namespace
}  // namespace ghostrank
