#include "tools/report/result_json.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "profiles/error.h"
#include "tests/tools/sample.h"

namespace ghostrank {
namespace {

using nlohmann::json;
using test::contents;
using test::put;
using test::sample;
using test::Scratch;

std::string error_of(const std::string& file) {
  try {
    read_result(file);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ResultJson, HasTheNamesAndNestingOfItsSchema) {
  const json j = json::parse(result_json(sample()));
  EXPECT_EQ(j["schema"], "ghostrank/result/1");
  EXPECT_EQ(j["version"], "9.8.7");
  EXPECT_EQ(j["argv"][1], "run");
  EXPECT_EQ(j["config"]["fabric"]["kind"], "ofi");
  EXPECT_EQ(j["hosts"][1], (json{{"index", 1},
                                 {"hostname", "beta"},
                                 {"name", "s2"},
                                 {"cores", "0-3"},
                                 {"bound", true},
                                 {"provider", "net"},
                                 {"transport", "tcp-cubic"},
                                 {"ranks", 2},
                                 {"rss_bytes", 2000},
                                 {"cpu_seconds", 2.5},
                                 {"cpu", "Fast 9000"},
                                 {"kernel", "Linux 6.1 x86_64"},
                                 {"libfabric", "1.17"}}));
  EXPECT_TRUE(j["hosts"][0]["libfabric"].is_null());
  EXPECT_EQ(j["build"],
            (json{{"commit", "1a2b3c4d5e6f"}, {"compiler", "GNU 12.2.0"}, {"type", "Release"}}));
  EXPECT_EQ(j["ranks"], 4);
  EXPECT_EQ(j["dilation"], 8);
  EXPECT_EQ(j["wall_seconds"], 12.5);
  EXPECT_EQ(j["iterations"][1], (json{{"seconds", 0.6},
                                      {"compute_seconds", 0.3},
                                      {"exposed_comm_seconds", 0.2},
                                      {"bubble_seconds", 0.1}}));
  EXPECT_EQ(j["collectives"][0], (json{{"op", "allreduce"},
                                       {"group", "dp"},
                                       {"algorithm", "ring"},
                                       {"calls", 3},
                                       {"bytes", 3072},
                                       {"seconds_median", 0.002},
                                       {"seconds_ci95", {0.0019, 0.0021}},
                                       {"algbw_GBps", 1.5},
                                       {"busbw_GBps", 2.25},
                                       {"seconds_valid", true},
                                       {"bandwidth_valid", true},
                                       {"exactness", {{"level", "L2"}, {"basis", "derived"}}}}));
  EXPECT_EQ(j["verify"], (json{{"checked_elements", 1000}, {"wrong_elements", 0}}));
}

TEST(ResultJson, NamesNicsByNodeAndPlace) {
  const json traffic = json::parse(result_json(sample()))["traffic"];
  EXPECT_EQ(traffic["wire_bytes_per_iteration"], 4096);
  EXPECT_EQ(traffic["messages_per_iteration"], 12);
  EXPECT_EQ(traffic["pairs"][0],
            (json{{"src", "n0.nic0"}, {"dst", "n1.nic1"}, {"bytes", 2048}, {"messages", 6}}));
}

TEST(ResultJson, CountsPacketsWhereSchemesSendThem) {
  Result result = sample();
  EXPECT_TRUE(json::parse(result_json(result))["packets"].is_null());
  result.packets = PacketCounts{.sent = 10, .received = 8, .lost_on_purpose = 3, .dropped = 1};
  json packets = json::parse(result_json(result))["packets"];
  EXPECT_EQ(packets, (json{{"sent", 10},
                           {"received", 8},
                           {"lost_on_purpose", 3},
                           {"doubled_on_purpose", 0},
                           {"delayed_on_purpose", 0},
                           {"dropped", 1},
                           {"refused", 0},
                           {"strays", 0}}));
  EXPECT_EQ(value_at(result, "packets.lost_on_purpose"), 3);
  EXPECT_TRUE(is_result_path("packets.dropped"));
  result.packets->unreadable = 1;
  EXPECT_TRUE(json::parse(result_json(result))["packets"]["dropped"].is_null());
}

TEST(ResultJson, SaysWhatBefellSwitches) {
  Result result = sample();
  EXPECT_TRUE(json::parse(result_json(result))["switch_troubles"].is_null());
  result.troubles = SwitchTroubles{.failures = 2, .unheard = 9, .restarts = 1};
  const json once = json::parse(result_json(result))["switch_troubles"];
  EXPECT_EQ(once, (json{{"failures", 2},
                        {"unheard_packets", 9},
                        {"restarts", 1},
                        {"fallbacks", 0},
                        {"first_fallback_s", nullptr},
                        {"ring_calls", 0}}));
  result.troubles->fallbacks = 1;
  result.troubles->first_fallback = 1'500 * kPicosPerMicro;
  EXPECT_EQ(value_at(result, "switch_troubles.first_fallback_s"), 0.0015);
}

TEST(ResultJson, SaysHowSparseTensorsAreWhereTheyAre) {
  Result result = sample();
  EXPECT_TRUE(json::parse(result_json(result))["tensors"].is_null());
  result.tensors = TensorUse{.calls = 2, .bytes = 800, .nonzero_bytes = 200, .union_density = 0.7};
  EXPECT_EQ(json::parse(result_json(result))["tensors"], (json{{"calls", 2},
                                                               {"bytes", 800},
                                                               {"nonzero_bytes", 200},
                                                               {"density", 0.25},
                                                               {"union_density_mean", 0.7}}));
  EXPECT_EQ(value_at(result, "tensors.density"), 0.25);
}

TEST(ResultJson, SaysNullForWhatIsUnknown) {
  Result result = sample();
  result.iterations.resize(1);
  const json j = json::parse(result_json(result));
  EXPECT_TRUE(j["interfaces"][1]["tx_bytes"].is_null());
  EXPECT_TRUE(j["fidelity"]["run_queue_wait"].is_null());
  EXPECT_EQ(j["step_time"]["median"], 0.4);
  EXPECT_TRUE(j["step_time"]["ci95"].is_null());
  EXPECT_TRUE(j["step_time"]["cv"].is_null());
  EXPECT_TRUE(j["interrupted"].is_null());
}

TEST(ResultJson, SaysHowFarTheComputeModelIsOff) {
  Result result = sample();
  const auto step = [&] { return json::parse(result_json(result))["step_time"]; };
  EXPECT_TRUE(step()["model_error"].is_null());
  EXPECT_EQ(step()["compute"], "calibrated");
  result.fidelity.model_error = 0.05;
  EXPECT_EQ(step()["model_error"], 0.05);
  result.fidelity.assumed_compute = true;
  EXPECT_EQ(step()["compute"], "assumed");
}

TEST(ResultJson, OfADeterministicRunSaysSoInPlaceOfAnInterval) {
  EXPECT_EQ(json::parse(result_json(sample()))["step_time"]["deterministic"], false);
  EXPECT_EQ(json::parse(result_json(sample()))["step_time"]["ci95"].size(), 2u);
  Result result = sample();
  result.deterministic = true;
  const json step = json::parse(result_json(result))["step_time"];
  EXPECT_EQ(step["deterministic"], true);
  EXPECT_TRUE(step["ci95"].is_null());
  EXPECT_EQ(step["mean"], 0.5);
  EXPECT_EQ(value_at(result, "step_time.deterministic"), 1);
}

TEST(ResultJson, OfADeterministicRunIsCompared) {
  const Scratch scratch;
  Result result = sample();
  result.deterministic = true;
  put(scratch / "r.json", result_json(result));
  EXPECT_EQ(read_result(scratch / "r.json").step_median, 0.5);
}

TEST(ResultJson, GivesATailOnlyFromAHundredIterations) {
  Result result = sample();
  result.iterations.assign(99, {1, 1, 0, 0});
  EXPECT_FALSE(json::parse(result_json(result))["step_time"].contains("p99"));
  result.iterations.push_back({1, 1, 0, 0});
  EXPECT_EQ(json::parse(result_json(result))["step_time"]["p99"], 1);
}

TEST(ResultJson, DerivesThroughputFromTheMedianStep) {
  const json j = json::parse(result_json(sample()));
  EXPECT_DOUBLE_EQ(j["samples_per_second"], 32);
  EXPECT_DOUBLE_EQ(j["tflops_per_gpu"], 2);  // 4 TFLOP in 0.5 s on 4 GPUs
  EXPECT_DOUBLE_EQ(j["mfu"], 0.25);          // of 8 TFLOP/s
}

// The paths of numbers and booleans under `path`, through objects and lists of things with names.
void add_paths(const json& at, const std::string& path, std::vector<std::string>& paths) {
  if (at.is_number() || at.is_boolean()) paths.push_back(path);
  for (const auto& [key, value] : at.items()) {
    const bool named = value.is_object() && (value.contains("name") || value.contains("link"));
    if (at.is_array() && !named) continue;
    const std::string name =
        !at.is_array() ? key
                       : value.at(value.contains("link") ? "link" : "name").get<std::string>();
    if (at.is_array() || at.is_object()) add_paths(value, path + "." + name, paths);
  }
}

TEST(ResultJson, EveryNumberIsAPath) {
  Result result = sample();
  result.iterations.resize(100);
  result.network = NetworkReport{};
  result.network->tiers = {{"leaf-spine"}};
  result.network->tiers.back().queue = QueueCount{};
  result.network->hottest = {{"leaf0-spine1", 0.5}};
  result.servers.emplace_back().name = "s.1";
  result.packets = PacketCounts{};
  result.troubles = SwitchTroubles{};
  result.network_switch = SwitchReport{};
  result.tensors = TensorUse{};
  result.tensors->last_density = 0.5;
  result.compression = CompressionUse{};
  result.jobs.emplace_back().name = "a";
  result.fidelity.figures = {{"step_time.median", 0.25}};
  std::vector<std::string> paths;
  json all = json::parse(result_json(result));
  all.erase("config");  // what was asked for
  for (const auto& [key, value] : all.items()) add_paths(value, key, paths);
  EXPECT_GT(paths.size(), 80u);
  for (const std::string& path : paths) {
    EXPECT_TRUE(is_result_path(path)) << path;
    EXPECT_TRUE(value_at(result, path)) << path;
  }
  EXPECT_EQ(value_at(result, "fidelity.figures.step_time.median.error"), 0.25);
  EXPECT_EQ(value_at(result, "network.hottest.leaf0-spine1.utilisation"), 0.5);
  EXPECT_FALSE(is_result_path("servers.s.1.busier"));
}

TEST(ResultJson, SurvivesTextThatIsNotUtf8) {
  Result result = sample();
  result.hosts[0].hostname = "bad\xff";
  EXPECT_TRUE(json::accept(result_json(result)));
}

TEST(ResultJson, ReadsBackWhatCompareNeeds) {
  const Scratch scratch;
  put(scratch / "r.json", result_json(sample()));
  const StoredResult r = read_result(scratch / "r.json");
  EXPECT_EQ(r.job, "job");
  EXPECT_EQ(r.fabric, "ofi");
  EXPECT_EQ(r.transport, "tcp-cubic");
  EXPECT_EQ(r.processes, 2);
  EXPECT_EQ(r.step_median, 0.5);
  EXPECT_EQ(r.exposed, 0.2);
  EXPECT_TRUE(r.faithful);
  ASSERT_TRUE(r.pairs_known);
  EXPECT_EQ(r.pairs.at({"n0.nic0", "n1.nic1"}), std::pair(2048.0, 6.0));
}

TEST(ResultJson, ReadsPairsFromTheFileBesideIt) {
  const Scratch scratch;
  Result result = sample();
  write_pairs_csv(scratch / "r.pairs.csv", result);
  EXPECT_EQ(contents(scratch / "r.pairs.csv"),
            "src,dst,bytes,messages\nn0.nic0,n1.nic1,2048,6\nn1.nic1,n0.nic0,2048,6\n");
  result.pairs_file = "r.pairs.csv";
  put(scratch / "r.json", result_json(result));
  EXPECT_FALSE(json::parse(contents(scratch / "r.json"))["traffic"].contains("pairs"));
  EXPECT_EQ(json::parse(contents(scratch / "r.json"))["traffic"]["nics"].size(), 2u);
  EXPECT_EQ(read_result(scratch / "r.json").pairs.size(), 2u);
}

// A result names its CSV by the path of its run; the folder may have been copied since.
TEST(ResultJson, ReadsPairsFromTheFileBesideItAndNotFromAnotherRuns) {
  const Scratch scratch;
  Result result = sample();
  result.pairs_file = scratch / "r.pairs.csv";
  put(result.pairs_file, "src,dst,bytes,messages\nn0.nic0,n1.nic1,1,1\n");
  std::filesystem::create_directory(scratch / "copy");
  put(scratch / "copy/r.json", result_json(result));
  write_pairs_csv(scratch / "copy/r.pairs.csv", result);
  EXPECT_EQ(read_result(scratch / "copy/r.json").pairs.size(), 2u);
  // None is beside it: read_result() takes the path in the result.
  std::filesystem::remove(scratch / "copy/r.pairs.csv");
  EXPECT_EQ(read_result(scratch / "copy/r.json").pairs.size(), 1u);
}

TEST(ResultJson, OfAnotherFormIsRefusedWithThePlace) {
  const Scratch scratch;
  const std::string file = scratch / "r.json";
  put(file, "{\n  \"schema\": ghost}");
  EXPECT_EQ(error_of(file).substr(0, file.size() + 5), file + ":2:13");
  put(file, "{}");
  EXPECT_NE(error_of(file).find("schema is ''"), std::string::npos);
  put(file, R"({"schema": "ghostrank/result/1", "ranks": 2})");
  EXPECT_NE(error_of(file).find("traffic is missing"), std::string::npos);
  put(file, R"({"schema": "ghostrank/result/1", "ranks": "many"})");
  EXPECT_EQ(error_of(file), file + ": ranks is not a number");
  put(file, R"({"schema": "ghostrank/result/1", "hosts": [1]})");
  EXPECT_EQ(error_of(file), file + ": hosts[0] is not an object");
  EXPECT_NE(error_of(scratch / "absent.json").find("No such file"), std::string::npos);
}

TEST(ResultJson, PartialLinesAreCompleteDocuments) {
  const json header = json::parse(partial_header(sample()));
  EXPECT_EQ(header["schema"], "ghostrank/partial/1");
  EXPECT_EQ(header["config"]["model"], "tiny");
  EXPECT_EQ(header["build"]["commit"], "1a2b3c4d5e6f");
  const json line = json::parse(partial_iteration(7, {0.5, 0.3, 0.2, 0}));
  EXPECT_EQ(line["iteration"], 7);
  EXPECT_EQ(line["seconds"], 0.5);
  EXPECT_EQ(partial_iteration(7, {}).find('\n'), partial_iteration(7, {}).size() - 1);
}

}  // namespace
}  // namespace ghostrank
