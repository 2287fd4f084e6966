// Ratios that follow links whose rate the kernel changes during a run, of which the job says
// nothing.
#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/network/namespaces.h"

namespace ghostrank {
namespace {

using nlohmann::json;
using testing::kHosts;
using testing::LinkShape;

// One tensor a step: its payload follows from the step's ratio. Links are slow beside what a busy
// machine adds.
constexpr char kJob[] =
    "model: {kind: layers, name: one, dtype: float32, layers: [{name: a, parameters: [200000], "
    "forward_us: 5000, backward_us: 5000}]}\n"
    "compression: {method: topk, budget_ms: 100}\n"
    "collectives: {library: generic, all_gather: ring}\n"
    "scale: {dilation: 1}\n"
    "run: {warmup: 7, probe_ms: 0}\n";
constexpr double kElements = 200'000;
constexpr LinkShape kFast{16e6, 16384}, kSlow{3e6, 16384};

void wait_for_iterations(const std::string& stream, std::ptrdiff_t count) {
  for (int i = 0; i < 4000; ++i) {
    const std::string text = testing::read_file(stream);
    if (std::count(text.begin(), text.end(), '\n') >= count) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.at(values.size() / 2);
}

class RealLinks : public testing::Namespaces {
 protected:
  std::vector<pid_t> start(const std::string& flags) {
    const std::string job = lab->write_job(kJob);
    std::vector<pid_t> hosts;
    for (int h = 0; h < kHosts; ++h)
      hosts.push_back(lab->start_host(
          h, kHosts,
          job +
              " -s cluster.gpus_per_node=1 -s cluster.nics_per_node=1 --allow-unfaithful --json " +
              lab->file("result.json") + flags));
    return hosts;
  }
  json result_of(const std::vector<pid_t>& hosts) {
    for (const pid_t pid : hosts)
      EXPECT_EQ(lab->finish(pid, std::chrono::seconds(60)), 0) << lab->output(0);
    return json::parse(testing::read_file(lab->file("result.json")));
  }
};

TEST_F(RealLinks, LowerTheRatiosWhenTheyGetSlower) {
  constexpr std::ptrdiff_t kFastSteps = 10;
  lab->shape(kFast);
  const auto hosts = start(" -s run.iterations=22");
  wait_for_iterations(lab->file("result.json.partial.jsonl"), kFastSteps);
  lab->change_rate(kSlow);
  const json result = result_of(hosts);

  const std::vector<double> ratios = result["compression"]["ratios"];
  ASSERT_EQ(ratios.size(), 22u);
  // The rate falls to less than a fifth.
  const double fast = median({ratios.begin() + kFastSteps - 7, ratios.begin() + kFastSteps});
  const double slow = median({ratios.end() - 7, ratios.end()});
  EXPECT_GT(fast / slow, 1.8);

  double kept = 0;  // elements of all steps
  for (const double ratio : ratios) kept += kElements * ratio;
  const double sent = (kHosts - 1) * 8 * kept;  // by each rank: places and values
  ASSERT_EQ(result["traffic"]["nics"].size(), 4u);
  for (const json& nic : result["traffic"]["nics"])
    EXPECT_NEAR(nic["tx_bytes"].get<double>() * 22, sent, 1e-6 * sent);
  // Headers add bytes, queued ones may be missing; host 0 also sends what it has gathered.
  ASSERT_EQ(result["interfaces"].size(), 4u);
  for (const json& counted : result["interfaces"])
    if (counted["host"] != 0) {
      EXPECT_NEAR(counted["tx_bytes"].get<double>(), sent, 0.1 * sent);
    }
}

TEST_F(RealLinks, CarryTheRightSums) {
  const json result = result_of(start(" -s run.iterations=6 -s run.verify=true"));
  EXPECT_GT(result["verify"]["checked_elements"].get<std::uint64_t>(), 0u);
  EXPECT_EQ(result["verify"]["wrong_elements"], 0);
  const std::vector<double> ratios = result["compression"]["ratios"];
  EXPECT_EQ(ratios.size(), 6u);
}

}  // namespace
}  // namespace ghostrank
