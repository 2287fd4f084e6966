// A run that this machine cannot keep up with reports that, every time.
#include <gtest/gtest.h>

#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::SmallJob;

constexpr int kTimes = 3;

// The emulated ranks exchange far more small messages than a core can move in that time.
TEST(AnOverloadedHost, IsNotFaithfulWhenMessagesAreMoreThanItCanMove) {
  SmallJob job(64, 1, FabricKind::memory);
  job.spec.dilation = 1;
  job.spec.cluster.nic.rate_bps = 0;
  job.spec.cluster.nic.latency = 0;
  job.spec.run.iterations = 3;
  for (int call = 0; call < 100; ++call) job.collective(Func::all_reduce, 64);
  for (int time = 0; time < kTimes; ++time) {
    const Fidelity f = job.run().fidelity;
    EXPECT_FALSE(f.faithful) << f.reason;
    EXPECT_NE(f.reason.find("lateness on the critical path"), std::string::npos) << f.reason;
  }
}

// Delays of 1 us, one after the other: no machine wakes up so precisely.
TEST(AnOverloadedHost, IsNotFaithfulWhenDelaysAreShorterThanItCanWait) {
  SmallJob job(1000, 1, FabricKind::memory);
  job.spec.dilation = 1;
  job.spec.run.iterations = 2;
  for (int i = 0; i < 200; ++i) job.compute(kPicosPerMicro);
  for (int time = 0; time < kTimes; ++time) EXPECT_FALSE(job.run().fidelity.faithful);
}

// A job with enough time for its work is not called unfaithful because of its messages.
TEST(AnOverloadedHost, IsNotBlamedOnWorkThatIsLight) {
  SmallJob job(4, 1, FabricKind::memory);
  job.spec.dilation = 1;
  job.spec.run.iterations = 3;
  job.compute(100 * kPicosPerMilli).collective(Func::all_reduce, 64);
  const Fidelity f = job.run().fidelity;
  EXPECT_LT(f.loop_busy, 0.8) << f.reason;
  EXPECT_EQ(f.reason.find("loop busy"), std::string::npos) << f.reason;
}

}  // namespace
}  // namespace ghostrank
