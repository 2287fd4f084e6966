// A placement that `ghostrank place` found sends between hosts what it said.
#include <chrono>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/network/namespaces.h"
#include "tests/shell.h"

namespace ghostrank {
namespace {

using nlohmann::json;
using testing::read_file;
using testing::start_hosts;
using Namespaces = testing::Namespaces;

TEST_F(Namespaces, APlacementThatWasFoundSendsWhatItSays) {
  const std::string job =
      lab->write_job(
          "model: {base: gpt2, layers: 4, hidden: 128, heads: 4, ffn: 512, sequence: 128, "
          "vocabulary: "
          "1024}\ndevice: h100-sxm\n"
          "parallel: {framework: megatron, pp: 2, dp: 4, order: tp-cp-ep-dp-pp, micro_batch: 1, "
          "global_batch: 8}\n"
          "placement: cyclic\n"
          "scale: {dilation: 100}\nrun: {warmup: 0, iterations: 2, probe_ms: 0}\n") +
      " -s cluster.nodes=8 -s cluster.gpus_per_node=1 -s cluster.nics_per_node=1";
  const auto placed =
      test::shell(std::string(GHOSTRANK_BINARY) + " place " + job + " --hosts 4 -o " +
                  lab->file("hosts.txt") + " --json " + lab->file("place.json"));
  ASSERT_EQ(placed.status, 0) << placed.text;
  const json place = json::parse(read_file(lab->file("place.json")));
  double found = 0, cyclic = 0;
  for (const json& way : place["placements"]) {
    if (way["name"] == "found") found = way["bytes_between_hosts"].get<double>();
    if (way["name"] == "cyclic") cyclic = way["bytes_between_hosts"].get<double>();
  }
  EXPECT_GT(found, 0);
  EXPECT_LT(found, cyclic);
  for (const pid_t pid :
       start_hosts(*lab, job + " --allow-unfaithful -s placement=" + lab->file("hosts.txt") +
                             " --json " + lab->file("result.json")))
    EXPECT_EQ(lab->finish(pid, std::chrono::seconds(120)), 0) << lab->output(0);
  const json result = json::parse(read_file(lab->file("result.json")));
  // The ledger's pairs, summed over hosts, are exactly what place said ...
  std::map<int, int> host_of;
  for (std::size_t h = 0; h < place["hosts"].size(); ++h)
    for (const json& node : place["hosts"][h]["nodes"])
      host_of[node.get<int>()] = static_cast<int>(h);
  std::map<int, double> sent;
  double between = 0;
  for (const json& pair : result["traffic"]["pairs"]) {
    const auto node = [&](const char* end) {
      return std::stoi(pair[end].get<std::string>().substr(1));
    };
    const int from = host_of.at(node("src")), to = host_of.at(node("dst"));
    if (from == to) continue;
    sent[from] += pair["bytes"].get<double>();
    between += pair["bytes"].get<double>();
  }
  EXPECT_NEAR(between, found, 1e-6 * found);
  // ... and the kernel has counted them, with headers.
  ASSERT_EQ(result["interfaces"].size(), 4u);
  for (const json& interface : result["interfaces"]) {
    const int host = interface["host"].get<int>();
    EXPECT_NEAR(sent[host], place["hosts"][host]["sends_bytes"].get<double>(), 1e-6 * found)
        << host;
    const double counted = interface["tx_bytes"].get<double>() / 2;  // of two iterations
    EXPECT_GE(counted, sent[host]) << host;
    EXPECT_LE(counted, 1.06 * sent[host] + 2e5) << host;
  }
}

}  // namespace
}  // namespace ghostrank
