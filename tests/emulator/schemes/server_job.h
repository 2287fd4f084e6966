// A job of one call over servers that hold keys, and how long it takes.
#pragma once

#include <cstdint>

#include "tests/emulator/support.h"

namespace ghostrank::testing {

constexpr double kServerJobRate = 80e9;  // bits per second: 10 GB/s

// One call of `bytes` on `nodes` nodes of a GPU each, with machines that take no time to sum.
inline SmallJob server_job(const char* scheme, int nodes, int servers, std::uint64_t bytes) {
  SmallJob job(nodes, 1, FabricKind::virtual_time);
  job.spec.collectives.algorithm(Func::all_reduce) = scheme;
  job.spec.cluster.nic = {kServerJobRate, kPicosPerMicro};
  ServerSpec& s = job.spec.cluster.servers;
  s.count = servers;
  s.nic = {kServerJobRate, kPicosPerMicro};
  s.add_GBps = s.optimizer_GBps = s.memory_GBps = 0;
  job.collective(Func::all_reduce, bytes / 4, DataType::float32, 0, 1);
  return job;
}

inline double seconds_of(const SmallJob& job) { return job.run().iterations.at(0).seconds; }

}  // namespace ghostrank::testing
