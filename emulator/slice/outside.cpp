#include "emulator/slice/outside.h"

#include <algorithm>
#include <mutex>
#include <string>

#include "emulator/common/clock.h"
#include "emulator/common/log.h"
#include "emulator/common/monotonic.h"
#include "emulator/engine_threads.h"
#include "emulator/fabric/local.h"
#include "emulator/traffic/traffic.h"
#include "profiles/error.h"
#include "profiles/planners/shared/machine_memory.h"

namespace ghostrank {
namespace {

// The whole job, in virtual time and in this process.
JobSpec whole_of(const JobSpec& spec) {
  JobSpec whole = spec;
  whole.slice.clear();
  whole.hosts.clear();
  whole.placement = {};
  whole.fabric.kind = FabricKind::virtual_time;
  whole.fabric.colocated = Colocated::memory;
  whole.fabric.payload = PayloadMode::untouched;
  whole.run.shards = 1;
  return whole;
}

// About as many bytes as are kept for a message that crosses, with those in use while they are
// sorted.
constexpr double kBytesPerCrossing = 300;

// Throws Error(usage) if what crosses in the longest segment does not fit this machine's memory.
void check_memory(const JobSpec& spec, const Workload& workload, const Cluster& slice) {
  const TrafficPlan plan = plan_traffic(spec, workload);
  const auto inside = [&](Nic nic) {
    return slice.plays(Node(nic.value() / slice.nics_per_node()));
  };
  double crossing = 0, answers = 0;
  for (const PairTraffic& pair : plan.pairs)
    if (inside(pair.source_nic) != inside(pair.target_nic)) crossing += pair.messages;
  for (const CollectiveTraffic& row : plan.collectives)
    answers += static_cast<double>(row.wire_credits);
  const double with_answers = 1 + answers / std::max(1.0, static_cast<double>(plan.wire_messages));
  const int iterations = std::max(spec.run.iterations, spec.run.warmup);
  need_memory(crossing * with_answers * iterations * kBytesPerCrossing,
              spec.source_of("scale.nodes") + ": scale.nodes: what crosses into the slice in " +
                  std::to_string(iterations) + " iterations",
              "play fewer iterations at a time (run.iterations), or a smaller slice");
}

}  // namespace

Outside::Outside(const JobSpec& spec, const Workload& workload, const Cluster& slice)
    : whole_(whole_of(spec)),
      cluster_(whole_, workload, 1),
      flows_(whole_, workload, cluster_),
      fabric_(make_local_fabric()),
      recorder_(slice) {
  check_memory(spec, workload, slice);
  Shard::Setup setup{whole_, workload, cluster_, Host(0), 0, flows_, *fabric_};
  setup.recorder = &recorder_;
  shard_.push_back(std::make_unique<Shard>(setup));
}

Outside::~Outside() = default;

const Crossings& Outside::play(const Segment& segment, Control& control) {
  const std::int64_t began = monotonic_ns();
  crossings_ = {};  // gives its memory back first
  Segment whole = segment;
  whole.dilation = 1;
  ShardShared shared(1);
  shared.fabrics = {fabric_.get()};
  {
    EngineThreads thread(shard_, whole, shared, control, whole_);
    thread.wait_until_prepared();
    thread.go(Clock::virtual_time());
    std::unique_lock lock(shared.mutex);
    shared.changed.wait(lock, [&] { return shared.running == 0; });
    lock.unlock();
    thread.join();
  }
  if (!shared.failure.empty())
    control.fail("scale.mode: slice: the whole job in virtual time: " + shared.failure,
                 shared.of_machine ? Stop::machine : Stop::failed);
  crossings_ = recorder_.take();
  log_info("the whole job in virtual time: ", crossings_.arrivals.size(),
           " arrivals at the slice, ", crossings_.departures.size(),
           " departures that lead to some; ", static_cast<double>(monotonic_ns() - began) * 1e-9,
           " s");
  return crossings_;
}

}  // namespace ghostrank
