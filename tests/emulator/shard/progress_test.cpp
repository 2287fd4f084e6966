// How far a run is, as its observer hears it.
#include <algorithm>

#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

struct Listener final : Observer {
  std::vector<double> shares;
  void on_progress(double share, double) override { shares.push_back(share); }
};

// A run of one iteration would else show nothing until its end.
TEST(Progress, GrowsWithinAnIteration) {
  for (const int shards : {1, 2}) {
    testing::SmallJob job(2, 1, FabricKind::memory);
    job.spec.dilation = 1;
    job.spec.run.shards = shards;
    for (int i = 0; i < 250; ++i) job.compute(2 * kPicosPerMilli);
    Listener listener;
    job.run(&listener);
    const auto& shares = listener.shares;
    EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
    const auto within = std::count_if(shares.begin(), shares.end(),
                                      [](double share) { return share > 0.05 && share < 0.95; });
    EXPECT_GE(within, 2) << shards;
    EXPECT_EQ(shares.back(), 1);
  }
}

}  // namespace
}  // namespace ghostrank
