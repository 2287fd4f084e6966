// What the kernel counts of runs that must not send faster than safety.max_rate_per_nic.
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
using testing::Lab;
using testing::read_file;
using testing::start_hosts;
using Namespaces = testing::Namespaces;

// All-reduces of 24 MB, one after the other: NICs are always busy.
constexpr char kBusyJob[] =
    "model: {kind: layers, name: busy, dtype: float32, layers: [{name: a, parameters: [6000000], "
    "forward_us: 10, backward_us: 20}]}\n"
    "run: {warmup: 0, iterations: 1, probe_ms: 0}\n";

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Runs the job on all hosts and looks at what each has sent every 0.3 s or so. Returns the highest
// rate of any host over any window, bits per second, and how many windows carried something.
struct Seen {
  double most_bps = 0;
  int windows = 0;
};
Seen watch(Lab& lab, const std::string& arguments) {
  std::vector<std::uint64_t> before(kHosts);
  std::vector<double> at(kHosts);
  Seen seen;
  const auto look = [&](bool count) {
    for (int h = 0; h < kHosts; ++h) {
      // The counter is read between these two moments: the longer window gives the lower rate, so
      // take the shorter one, from the end of one reading to the beginning of the next.
      const double begin = seconds_now();
      const std::uint64_t bytes = lab.sent_by(h);
      const double end = seconds_now();
      const double bps = 8 * static_cast<double>(bytes - before[h]) / (begin - at[h]);
      if (count && bytes - before[h] > 100'000) {
        ++seen.windows;
        // What was sent while the counters were read belongs to either window.
        const double unsure = (end - begin) / (begin - at[h]);
        seen.most_bps = std::max(seen.most_bps, bps / (1 + 2 * unsure));
      }
      before[h] = bytes;
      at[h] = end;
    }
  };
  const std::vector<pid_t> hosts = start_hosts(lab, arguments);
  look(false);
  while (lab.running(hosts[0])) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    look(true);
  }
  for (int h = 0; h < kHosts; ++h)
    EXPECT_EQ(lab.finish(hosts[h], std::chrono::seconds(60)), 0) << lab.output(h);
  return seen;
}

TEST_F(Namespaces, NoHostSendsFasterThanTheCap) {
  const std::string job = lab->write_job(kBusyJob);
  for (const std::string flows : {"process", "connection"}) {
    // At this dilation the two NICs of a host need almost what the cap allows.
    const Seen seen = watch(
        *lab, job +
                  " -s safety.max_rate_per_nic=300Mbps -s scale.dilation=75 --allow-unfaithful"
                  " -s run.duration=2s -s fabric.flows=" +
                  flows + " --json " + lab->file("result.json"));
    EXPECT_GT(seen.windows, 8) << flows;
    EXPECT_LE(seen.most_bps, 300e6) << flows;
    EXPECT_GT(seen.most_bps, 150e6) << flows << ": what is sent is near the cap";
  }
}

TEST_F(Namespaces, AnAutomaticDilationFitsTheCap) {
  const std::string job = lab->write_job(kBusyJob);
  const Seen seen = watch(*lab, job +
                                    " -s safety.max_rate_per_nic=300Mbps --allow-unfaithful"
                                    " -s model.layers='[{parameters: [60000], forward_us: 10, "
                                    "backward_us: 20}]' --json " +
                                    lab->file("result.json"));
  EXPECT_GT(seen.windows, 0);
  EXPECT_LE(seen.most_bps, 300e6);
  const json result = json::parse(read_file(lab->file("result.json")));
  EXPECT_GE(result["dilation"].get<double>(), 20e9 / 300e6);
}

// The probe before the start sends all that it can.
TEST_F(Namespaces, AProbeKeepsToTheCap) {
  const std::string job = lab->write_job(kBusyJob);
  const Seen seen = watch(*lab, job +
                                    " -s safety.max_rate_per_nic=1.2Gbps --allow-unfaithful"
                                    " -s scale.dilation=1000 -s run.probe_ms=1500"
                                    " -s cluster.gpus_per_node=1 -s cluster.nics_per_node=1"
                                    " -s model.layers='[{parameters: [1000], forward_us: 10, "
                                    "backward_us: 20}]'");
  EXPECT_LE(seen.most_bps, 1.2e9);
  EXPECT_GT(seen.most_bps, 0.2e9);
}

TEST_F(Namespaces, ADilationThatNeedsMoreThanTheCapIsRefusedWithTheLeastThatFits) {
  const std::string job = lab->write_job(kBusyJob);
  for (const pid_t pid :
       start_hosts(*lab, job + " -s safety.max_rate_per_nic=300Mbps -s scale.dilation=20"))
    EXPECT_EQ(lab->finish(pid, std::chrono::seconds(30)), 2);
  const std::string said = lab->output(0), words = "the least dilation that fits is ";
  const std::size_t at = said.find(words);
  ASSERT_NE(at, std::string::npos) << said;
  const double least = std::stod(said.substr(at + words.size()));
  EXPECT_GT(least, 20e9 / 300e6);
  EXPECT_LT(least, 20e9 / 300e6 * 1.12) << "headers and a reserve";
  const std::string fits = std::to_string(static_cast<int>(least));
  for (const pid_t pid :
       start_hosts(*lab, job +
                             " --allow-unfaithful -s safety.max_rate_per_nic=300Mbps -s "
                             "scale.dilation=" +
                             fits))
    EXPECT_EQ(lab->finish(pid, std::chrono::seconds(30)), 0) << lab->output(0);
}

}  // namespace
}  // namespace ghostrank
