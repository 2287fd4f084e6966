// Several jobs on one fabric, for tests.
//
// Threading: plain values.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/planners/compression/compression.h"
#include "profiles/workload/merge.h"
#include "tests/emulator/support.h"
#include "tests/method_named.h"

namespace ghostrank::testing {

struct Placed {
  SmallJob job;  // of its own cluster only the servers count
  std::vector<int> nodes;
};

// The jobs on the nodes of `fabric`.
inline SmallJob together(const SmallJob& fabric, const std::vector<Placed>& jobs) {
  SmallJob out = fabric;
  std::vector<NamedWorkload> workloads;
  for (const Placed& one : jobs) {
    const std::string name(1, static_cast<char>('a' + workloads.size()));
    workloads.push_back({name, one.job.workload});
    JobOnNodes& place = out.spec.jobs.emplace_back();
    place.name = name;
    place.job = std::make_shared<const JobSpec>(one.job.spec);
    out.spec.cluster.servers.count += one.job.spec.cluster.server_nodes();
    for (const int node : one.nodes) {
      place.nodes.emplace_back(node);
      out.spec.cluster.node_of_block.emplace_back(node);
    }
  }
  out.workload = merge(workloads);
  return out;
}

// Compresses the tensor that the job reduces.
inline void compress_by(std::string_view method, const CompressionOptions& options, SmallJob& job) {
  job.spec.compression = CompressionSpec{&method_named(method), options};
  compress(job.spec, job.workload);
}

inline std::vector<double> seconds_of(const std::vector<IterationReport>& iterations) {
  std::vector<double> seconds;
  for (const IterationReport& i : iterations) seconds.push_back(i.seconds);
  return seconds;
}

}  // namespace ghostrank::testing
