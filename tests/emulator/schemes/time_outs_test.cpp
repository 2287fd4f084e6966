// What a run says of time-outs that are shorter than a round trip holds for random jobs: with the
// least one that it names nothing is sent again on an idle network.
#include "emulator/traffic/time_outs.h"

#include <random>
#include <string>

#include <gtest/gtest.h>

#include "tests/emulator/support.h"
#include "tests/one_of.h"

namespace ghostrank {
namespace {

using test::one_of;
using testing::SmallJob;

constexpr const char* kSchemes[]{"switchml", "atp", "omnireduce", "omnireduce_switch"};

// No packet is lost, and all ranks begin the call at once.
SmallJob drawn_job(unsigned seed) {
  std::mt19937 random(seed);
  SmallJob job(one_of(random, {2, 3, 5, 8}), one_of(random, {1, 2}), FabricKind::virtual_time);
  JobSpec& spec = job.spec;
  const std::string scheme = kSchemes[seed % std::size(kSchemes)];
  spec.collectives.algorithm(Func::all_reduce) = scheme;
  ClusterSpec& cluster = spec.cluster;
  cluster.nics_per_node = one_of(random, {1, cluster.gpus_per_node});
  cluster.nic = {one_of(random, {1e10, 1e11, 4e11}), one_of(random, {1, 5}) * kPicosPerMicro};
  cluster.servers.count = one_of(random, {1, 2, 3});
  cluster.servers.colocated = random() % 2 == 0;
  if (cluster.servers.colocated)
    cluster.servers.count = std::min(cluster.servers.count, cluster.nodes);
  cluster.servers.nic = {one_of(random, {1e10, 1e11}), 2 * kPicosPerMicro};
  InSwitch& in_switch = spec.collectives.in_switch;
  in_switch.slots = one_of(random, {16, 64, 256});
  in_switch.packet_elements = one_of(random, {64, 256});
  in_switch.packet_rate = one_of(random, {0.0, 0.0, 5e6});
  spec.collectives.omnireduce.packets = true;
  spec.collectives.omnireduce.columns = 1;
  spec.collectives.omnireduce.block = one_of(random, {64, 256});
  spec.collectives.omnireduce.slots = one_of(random, {16, 64});
  if (scheme.starts_with("omnireduce"))
    spec.tensors = Sparsity{one_of(random, {0.05, 0.4, 1.0}), 256, Overlap::random};
  spec.run.iterations = 1;
  cluster.servers.cores = one_of(random, {1, 8});
  cluster.servers.add_GBps = one_of(random, {1, 20});
  return job.collective(Func::all_reduce, 100'000, DataType::int32, 0, 1);
}

SmallJob with(SmallJob job, Picoseconds timeout) {
  job.spec.collectives.in_switch.timeout_ps = timeout;
  job.spec.collectives.omnireduce.timeout_ps = timeout;
  return job;
}

// Microseconds; 0: the result has no note.
int least_of(const Result& result) {
  const std::string before = "use at least ";
  for (const std::string& note : result.notes)
    if (note.find(".timeout_us: ") != std::string::npos)
      if (const auto at = note.find(before); at != std::string::npos)
        return std::stoi(note.substr(at + before.size()));
  return 0;
}

TEST(TimeOuts, OfTheLeastThatANoteNamesSendNothingAgain) {
  for (unsigned seed = 0; seed < 32; ++seed) {
    const SmallJob job = drawn_job(seed);
    SCOPED_TRACE("job " + std::to_string(seed) + ", " +
                 job.spec.collectives.algorithm(Func::all_reduce));
    const double patient = with(job, kPicosPerSecond).run().messages_per_iteration;
    const Result hasty = with(job, kPicosPerMicro).run();
    const int least = least_of(hasty);
    if (hasty.messages_per_iteration != patient) {
      ASSERT_GT(least, 1);
    }
    if (least == 0) continue;
    const Result right = with(job, least * kPicosPerMicro).run();
    EXPECT_EQ(right.messages_per_iteration, patient) << least;
    EXPECT_EQ(least_of(right), 0);
    if (least < 50) continue;  // mostly latency, of which it counts a little too much
    const Result shorter = with(job, least * 2 / 5 * kPicosPerMicro).run();
    EXPECT_GT(shorter.messages_per_iteration, patient) << least;
  }
}

}  // namespace
}  // namespace ghostrank
