#include "tools/benchmarks/two_processes.h"

#include <cstdio>
#include <exception>
#include <sys/wait.h>
#include <unistd.h>

namespace ghostrank::bench {

std::optional<Result> play_as_two(const BenchJob& job) {
  static int port = 21000 + static_cast<int>(getpid() % 20000);
  World world;
  world.size = 2;
  world.master_port = port++;
  const pid_t child = fork();
  if (child < 0) return std::nullopt;
  world.rank = child == 0 ? 1 : 0;
  Result result;
  try {
    const auto control = Control::meet(world);
    result = play(job, *control);
    control->close();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench: %s\n", e.what());
    if (child == 0) _exit(1);
  }
  if (child == 0) _exit(0);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0 || !result.interrupted.empty() || result.iterations.size() != 1)
    return std::nullopt;
  return result;
}

BenchJob stream_job(int ranks, std::uint64_t each, std::uint64_t bytes) {
  BenchJob job =
      collective_job(FabricKind::ofi, ranks, 2, collective(Func::broadcast, each * bytes / 4), 1);
  job.job.spec.fabric.provider = kLoopbackProvider;
  job.job.spec.collectives.slice_bytes = bytes;
  job.job.spec.fabric.frame_bytes = 64 << 10;  // the default of a job
  job.workload.groups.clear();
  for (WorldRank r; r < WorldRank(ranks / 2); ++r)
    job.workload.groups.push_back({0, {r, r + ranks / 2}});
  return job;
}

}  // namespace ghostrank::bench
