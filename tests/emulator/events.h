// Events of jobs, for tests: stragglers, and links that fail or slow down.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "profiles/job/events.h"
#include "profiles/job/switches.h"
#include "tests/emulator/support.h"
#include "tests/one_of.h"

namespace ghostrank::testing {

inline JobEvent mark(const std::string& name, Picoseconds at) {
  JobEvent event;
  event.what = name;
  event.at = at;
  return event;
}

inline JobEvent slow(int rank, double factor, Picoseconds at, Picoseconds lasts = JobEvent::kEver) {
  JobEvent event;
  event.kind = JobEvent::Kind::slow;
  event.ranks = {WorldRank(rank)};
  event.factor = factor;
  event.at = at;
  event.lasts = lasts;
  return event;
}

// `bps`: 0: nothing passes.
inline JobEvent link(const ClusterSpec& cluster, const std::string& name, Picoseconds at,
                     Picoseconds lasts, double bps = 0) {
  JobEvent event;
  event.kind = JobEvent::Kind::link;
  event.at = at;
  event.lasts = lasts;
  event.bps = bps;
  const std::vector<std::uint32_t> found = CableNames(switches_of(cluster)).find(name);
  EXPECT_EQ(found.size(), 1u) << name;
  if (!found.empty()) event.cable = found.front();
  return event;
}

inline SmallJob& with_events(SmallJob& job, std::vector<JobEvent> events) {
  job.spec.events = std::make_shared<const JobEvents>(JobEvents{std::move(events)});
  return job;
}

// A few events of the first milliseconds. `down`: links may fail, not only slow down.
inline std::vector<JobEvent> random_events(std::mt19937& random, const JobSpec& spec, int ranks,
                                           bool down = true) {
  using test::one_of;
  std::vector<JobEvent> events;
  SwitchGraph graph;
  if (spec.cluster.topology.kind != TopologySpec::Kind::nonblocking)
    graph = switches_of(spec.cluster);
  const auto time = [&] { return one_of(random, {0, 30, 200, 1000, 5000}) * kPicosPerMicro; };
  for (unsigned n = 1 + random() % 4; n > 0; --n) {
    const auto cable =
        static_cast<std::uint32_t>(graph.cables.empty() ? 0 : random() % graph.cables.size());
    const double bps = graph.cables.empty() ? 0 : graph.cables[cable].bps;
    if (random() % 2 == 0 || bps == 0) {
      events.push_back(slow(static_cast<int>(random() % static_cast<unsigned>(ranks)),
                            one_of(random, {1.0, 1.5, 4.0}), time(), time() + 1));
      if (random() % 3 > 0) continue;
      events.back().iteration = random() % 3;
      events.back().iterations = 1 + random() % 2;
      continue;
    }
    JobEvent event;
    event.kind = JobEvent::Kind::link;
    event.cable = cable;
    event.at = time();
    event.lasts = time() + 1;
    event.bps = down && random() % 2 == 0 ? 0 : bps * one_of(random, {down ? 0.1 : 0.5, 0.5, 0.9});
    events.push_back(event);
  }
  events.push_back(mark("x", time()));
  return events;
}

}  // namespace ghostrank::testing
