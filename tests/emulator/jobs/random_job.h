// Random small jobs with real data: collectives of every library, schemes with agents, compressed
// gradients, planned steps with traffic beside them, over NICs whose rates change. A number draws
// the same job each time.
#pragma once

#include <random>
#include <span>
#include <string>
#include <string_view>

#include "tests/emulator/support.h"

namespace ghostrank::testing {

struct RandomJob {
  SmallJob
      job;  // over libfabric; what only virtual time has (links between switches) is in it, too
  int processes;
};

// `scheme`: what sums all-reduces; empty: one of random_schemes(), or none.
RandomJob random_job(unsigned seed, std::string_view scheme = {});
std::span<const std::string_view> random_schemes();

// Whether all-reduces go through a modelled switch, which over libfabric a server plays.
bool sums_in_switch(const JobSpec& spec);

// The numbers of the jobs that a test plays: [first, end).
struct JobNumbers {
  unsigned first, end;
};

// GHOSTRANK_RANDOM_JOBS=N: N jobs; GHOSTRANK_RANDOM_FIRST=F: from number F on.
JobNumbers asked_jobs(unsigned otherwise);

std::string name_of(const RandomJob& random);

// Some NICs get rates that change within messages, down to 1 / `slowest` of their own.
void add_rates(std::mt19937& random, ClusterSpec& cluster, double slowest);

}  // namespace ghostrank::testing
