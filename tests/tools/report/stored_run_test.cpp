// A result file is read back as the result that it was made of.
#include "tools/report/stored_run.h"

#include <gtest/gtest.h>

#include "profiles/error.h"
#include "tests/tools/sample.h"
#include "tools/report/json/json.h"

namespace ghostrank {
namespace {

using test::put;
using test::sample;
using test::Scratch;

// Has every part that a result can have.
Result whole() {
  Result r = sample();
  r.config_json = R"({"cluster": {"nodes": 2, "nics_per_node": 2}, "run": {"iterations": 3}})";
  r.iterations_asked = 3;
  r.played_wall_seconds = 4;
  r.flows = {{Host(0), Host(1), 3}};
  r.tensors = TensorUse{.calls = 2, .bytes = 800, .nonzero_bytes = 200, .union_density = 0.7};
  r.tensors->last_density = 0.5;
  r.compression = CompressionUse{"topk", 900, 0.01, 0.012, {0.01, 0.014}};
  r.training = TrainingUse{"logistic", {0.7, 0.5}};
  r.servers = {{"n2", 1000, 2000, 0.25, 4096}};
  r.packets = PacketCounts{.sent = 10, .received = 8, .lost_on_purpose = 3, .dropped = 1};
  r.packets->sent_again = 4;
  r.troubles = SwitchTroubles{.failures = 2, .unheard = 9, .restarts = 1, .fallbacks = 1};
  r.troubles->first_fallback = 1'500 * kPicosPerMicro;
  r.network_switch = SwitchReport{"dpdk", "10.0.0.254", 1.5, 1 << 20};
  r.network = NetworkReport{.model = "packet", .topology = "leaf_spine", .routing = "ecmp"};
  r.network->tiers = {{"leaf-spine", 4, 0.25, 0.5, 4096, 12, 1e-6, 2e-6}};
  r.network->tiers.back().queue =
      QueueCount{.packets = 100, .again = 1, .drops = 2, .longest = 4000, .paused = 5'000'000};
  r.network->hottest = {{"leaf0-spine1", 0.5, 2048, 6, 1e-6, 2e-6}};
  r.interfaces[0].iterations = {{100, 200}, {std::nullopt, 300}};
  r.interfaces[0].counters = {{"rx_dropped", 12}};
  r.stalls = {{0.25, 0.5, 2, 4, {1, 2}}};
  r.events = {{2, 40.0, 1, "mark", "x"}, {3, std::nullopt, std::nullopt, "slow", "rank 7 x 1.5"}};
  r.fidelity.figures = {{"step_time.median", 0.002}, {"step_time.p99", 0.5}};
  r.fidelity.model_error = 0.05;
  r.fidelity.throttled = -1;
  r.capacity.wire_bytes_per_second = 1e9;
  r.capacity.dilation_needed = 3;
  r.notes = {"a note"};
  r.interrupted = "stopped by a signal";
  return r;
}

// Equal, but for what rounding makes of a rate that is turned into a count and back.
void expect_alike(const SortedJson& a, const SortedJson& b, const std::string& path) {
  if (a.is_number() && b.is_number()) {
    EXPECT_NEAR(a.get<double>(), b.get<double>(), 1e-12 * std::abs(a.get<double>())) << path;
    return;
  }
  ASSERT_EQ(a.type(), b.type()) << path;
  ASSERT_EQ(a.size(), b.size()) << path;
  if (a.is_object()) {
    for (const auto& [key, value] : a.items()) {
      ASSERT_TRUE(b.contains(key)) << path << "." << key;
      expect_alike(value, b.at(key), path + "." + key);
    }
  } else if (a.is_array()) {
    for (std::size_t i = 0; i < a.size(); ++i)
      expect_alike(a[i], b[i], path + "[" + std::to_string(i) + "]");
  } else {
    EXPECT_EQ(a, b) << path;
  }
}

TEST(StoredRun, IsTheResultThatWasWritten) {
  const SortedJson written = SortedJson::parse(result_json(whole()));
  StoredRun run = stored_run(written, "r.json");
  run.result.config_json = run.config.dump();
  expect_alike(written, SortedJson::parse(result_json(run.result)), "");
  EXPECT_TRUE(run.judged);
  EXPECT_EQ(run.result.iterations_asked, 3);
  EXPECT_EQ(run.stored.pairs.size(), 2u);
}

TEST(StoredRun, NeedsOnlyTraffic) {
  const StoredRun run =
      stored_run(SortedJson::parse(R"({"schema": "ghostrank/result/1", "traffic": {}})"), "r.json");
  EXPECT_FALSE(run.judged);
  EXPECT_FALSE(run.result.network);
  EXPECT_TRUE(run.config.is_object());
  EXPECT_EQ(run.hash, "");
}

std::string error_of(const std::string& path, const std::string& value) {
  SortedJson json = SortedJson::parse(result_json(whole()));
  json[SortedJson::json_pointer(path)] = SortedJson::parse(value);
  try {
    stored_run(json, "r.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(StoredRun, NamesTheKeyThatIsWrong) {
  EXPECT_EQ(error_of("/traffic/nics/0/nic", "\"eth0\""), "r.json: traffic.nics[0].nic is no NIC");
  EXPECT_EQ(error_of("/traffic/nics/0/nic", "\"n2147483647.nic0\""),
            "r.json: traffic.nics[0].nic is no NIC");
  EXPECT_EQ(error_of("/servers/0/memory_bytes", "-5"),
            "r.json: servers[0].memory_bytes is no count");
  EXPECT_EQ(error_of("/hosts/0/ranks", "1e12"), "r.json: hosts[0].ranks is too large");
  EXPECT_EQ(error_of("/config", "[]"), "r.json: config is not an object");
  EXPECT_EQ(error_of("/notes", "[1]"), "r.json: notes[0] is not a text");
}

TEST(StoredRun, IsNotNestedWithoutEnd) {
  const Scratch scratch;
  std::string deep = R"({"schema": "ghostrank/result/1", "traffic": {}, "config": )";
  for (int i = 0; i < 200; ++i) deep += "{\"a\":";
  deep += "1";
  for (int i = 0; i < 201; ++i) deep += "}";
  put(scratch / "deep.json", deep);
  try {
    read_run(scratch / "deep.json");
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("deep.json:1:"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("nested more than 100 deep"), std::string::npos);
  }
}

TEST(StoredRun, TakesNoPairsFromADevice) {
  SortedJson json = SortedJson::parse(result_json(whole()));
  json["traffic"].erase("pairs");
  json["traffic"]["pairs_file"] = "/dev/zero";  // which never ends
  EXPECT_FALSE(stored_run(json, "r.json").stored.pairs_known);
}

}  // namespace
}  // namespace ghostrank
