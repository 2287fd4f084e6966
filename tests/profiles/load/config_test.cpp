// The origins of values, and writing them out again.
#include "profiles/load/config.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "profiles/load/job_schema.h"
#include "profiles/load/load.h"
#include "profiles/load/variables.h"
#include "profiles/planners/plan.h"
#include "tests/profiles/load/texts.h"
#include "tests/profiles/support.h"
#include "tests/variable.h"

namespace ghostrank {
namespace {

using test::kHead;
using test::load_text;
using test::Variable;

ConfigEntry entry(const LoadedJob& job, const std::string& path) {
  const auto at = std::find_if(job.entries.begin(), job.entries.end(),
                               [&](const ConfigEntry& one) { return one.path == path; });
  return at == job.entries.end() ? ConfigEntry{} : *at;
}

TEST(Config, FlagsWinOverEnvironmentOverFileOverDefault) {
  const auto seed = [](const std::string& file, const std::vector<std::string>& flags) {
    return entry(load_text(kHead + file, flags), "run.seed");
  };
  EXPECT_EQ(seed("", {}).value, "1");
  EXPECT_EQ(seed("", {}).origin, "default");
  const ConfigEntry from_file = seed("run: {seed: 2}\n", {});
  EXPECT_EQ(from_file.value, "2");
  EXPECT_TRUE(from_file.origin.ends_with("job.yaml:4")) << from_file.origin;
  const Variable environment("GHOSTRANK_RUN_SEED", "3");
  EXPECT_EQ(seed("run: {seed: 2}\n", {}).value, "3");
  EXPECT_EQ(seed("run: {seed: 2}\n", {}).origin, "GHOSTRANK_RUN_SEED");
  EXPECT_EQ(seed("run: {seed: 2}\n", {"run.seed=4"}).value, "4");
  EXPECT_EQ(seed("run: {seed: 2}\n", {"run.seed=4"}).origin, "-s");
  EXPECT_EQ(seed("", {"run.seed=4", "run.seed=5"}).value, "5");
}

TEST(Config, CallsAnEnvironmentVariableByItsNameInErrors) {
  const Variable environment("GHOSTRANK_CLUSTER_NIC_RATE", "fast");
  EXPECT_EQ(test::load_error(kHead),
            "GHOSTRANK_CLUSTER_NIC_RATE: cluster.nic.rate is 'fast'; write a rate such as 400Gbps, "
            "or unlimited");
}

TEST(Config, LeavesVariablesOfOthersAlone) {
  const Variable port("GHOSTRANK_PORT", "x"), token("GHOSTRANK_TOKEN", "y"),
      other("GHOSTRANK_SOMETHING", "z");
  EXPECT_EQ(test::load_error(kHead), "");
}

// Programs that tests and benchmarks start inherit these variables, so ghostrank accepts them.
TEST(Config, RefusesNoVariableOfTheTests) {
  std::set<std::string> names;
  const std::regex reads("(?:getenv|asked)\\(\"(GHOSTRANK_[A-Z_]+)\"");
  for (const char* folder : {"/tests", "/tools/benchmarks"})
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(GHOSTRANK_SOURCE_DIR + std::string(folder)))
      if (entry.path().extension() == ".cpp") {
        const std::string text = test::read_file(entry.path());
        for (std::sregex_iterator at(text.begin(), text.end(), reads), end; at != end; ++at)
          names.insert((*at)[1]);
      }
  EXPECT_TRUE(names.contains("GHOSTRANK_UPDATE"));
  for (const std::string& name : names) {
    const Variable set(name, "1");
    EXPECT_EQ(test::error_of([] { check_variables(); }), "") << name;
  }
  const Variable wrong("GHOSTRANK_UPDAT", "1");
  const std::string refused = test::error_of([] { check_variables(); });
  EXPECT_NE(refused.find("no variable GHOSTRANK_UPDAT;"), std::string::npos) << refused;
  EXPECT_EQ(refused.find("GHOSTRANK_UPDATE"), std::string::npos) << refused;
}

TEST(Config, GivesNoTwoKeysOneVariable) {
  std::vector<std::string> names;
  for (const Key& key : job_keys()) names.push_back(environment_name(key.path));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST(Config, MergesMappingsOfFlags) {
  const LoadedJob job =
      load_text(kHead + "cluster: {nodes: 4, nic: {rate: 100Gbps, latency_us: 5}}\n",
                {"cluster={nodes: 16, nic: {rate: 200Gbps}}"});
  EXPECT_EQ(job.spec.cluster.nodes, 16);
  EXPECT_EQ(job.spec.cluster.nic.rate_bps, 200e9);
  EXPECT_EQ(job.spec.cluster.nic.latency, 5 * kPicosPerMicro);
}

TEST(Config, TakesAClusterByNameOrAsABase) {
  EXPECT_EQ(load_text(kHead + "cluster: ethernet-25g\n").spec.cluster.nic.rate_bps, 25e9);
  const LoadedJob job = load_text(kHead + "cluster: {base: dgx-a100-200g, nodes: 3}\n");
  EXPECT_EQ(job.spec.cluster.nodes, 3);
  EXPECT_EQ(job.spec.cluster.intra_node.rate_bps, 2400e9);
  EXPECT_TRUE(entry(job, "cluster.nic.rate").origin.find("dgx-a100-200g.yaml:5") !=
              std::string::npos);
  const LoadedJob flag = load_text(kHead + "cluster: dgx-a100-200g\n", {"cluster.nodes=5"});
  EXPECT_EQ(flag.spec.cluster.nodes, 5);
  EXPECT_EQ(flag.spec.cluster.nic.rate_bps, 200e9);
}

TEST(Config, ChangesOneKeyOfAProfile) {
  const LoadedJob job = load_text(kHead, {"device.efficiency=0.5", "model.classes=10"});
  EXPECT_EQ(job.spec.device.name, "h100-sxm");
  EXPECT_EQ(job.spec.device.efficiency, 0.5);
  EXPECT_EQ(job.spec.device.peak_tflops.at("bfloat16"), 989);
  EXPECT_EQ(job.spec.model->layers.back().parameters[1].numel, 10u);
}

TEST(Config, FindsProfilesNextToTheJob) {
  const test::Folder folder;
  folder.write("mine.yaml", "kind: layers\nlayers: [{parameters: [5]}]\n");
  folder.write("models/other.yaml", "kind: layers\nname: x\nlayers: [{parameters: [6]}]\n");
  folder.write("two.csv", "0,7,1,1\n");
  const auto model = [&](const std::string& name) {
    return load_job(folder.write("job.yaml", "model: " + name + "\n"), {}).spec;
  };
  EXPECT_EQ(model("./mine.yaml").model->parameters(), 5u);
  EXPECT_EQ(model("./mine.yaml").model_name, "mine");
  EXPECT_EQ(model("other").model->parameters(), 6u);
  EXPECT_EQ(model("two.csv").model->parameters(), 7u);
}

TEST(Config, FindsProfilesInTheFoldersOfTheEnvironment) {
  const test::Folder folder;
  folder.write("devices/mine.yaml", "peak_tflops: {fp32: 123}\n");
  const std::string list = "/nowhere:" + folder.path("");
  const Variable environment("GHOSTRANK_PROFILES", list);
  EXPECT_EQ(load_text("model: gpt2\ndevice: mine\n").spec.device.peak_tflops.at("float32"), 123);
}

TEST(Config, TakesTheTypesOfAMeasuredModel) {
  const std::string model = "model: {kind: layers, dtype: int32, layers: [{parameters: [5]}]}\n";
  const auto types = [&](const std::vector<std::string>& overrides) {
    const Precision precision = load_text(model, overrides).spec.precision;
    return std::pair(precision.parameters, precision.gradients);
  };
  EXPECT_EQ(types({}), std::pair(DataType::int32, DataType::int32));
  EXPECT_EQ(types({"precision.gradients=bf16"}), std::pair(DataType::int32, DataType::bfloat16));
  EXPECT_EQ(types({"precision.parameters=fp32"}), std::pair(DataType::float32, DataType::int32));
}

TEST(Config, TakesTheGradientTypeOfTheFramework) {
  const auto gradients = [](const std::string& framework, const std::string& given) {
    return load_text("model: gpt2\ndevice: h100-sxm\nprecision: {parameters: bf16" + given +
                     "}\nparallel: {framework: " + framework + "}\n")
        .spec.precision.gradients;
  };
  for (const char* framework : {"zero1", "zero2", "zero3"}) {
    EXPECT_EQ(gradients(framework, ""), DataType::bfloat16);
    EXPECT_EQ(gradients(framework, ", gradients: fp32"), DataType::float32);
  }
  for (const char* framework : {"ddp", "fsdp", "megatron"})
    EXPECT_EQ(gradients(framework, ""), DataType::float32);
}

TEST(Config, FillsEveryPartOfTheJob) {
  const JobSpec job =
      load_text(
          kHead +
          "precision: {parameters: bf16, gradients: bfloat16, optimizer: sgd}\n"
          "collectives: {allreduce: ring, channels: 4, slice: 512KiB, credits: 8}\n"
          "fabric: {kind: ofi, provider: tcp;ofi_rxm, bind: 10.0.0.1, colocated: model, "
          "payload: copied}\n"
          "placement: cyclic\nscale: {dilation: 12.5}\n"
          "parallel: {micro_batch: 3, launch: flat}\n"
          "run: {iterations: 9, warmup: 0, min_seconds: 1.5, verify: true, seed: 7, jitter: 0.1, "
          "stall_timeout_s: 2.5, shards: 2}\n")
          .spec;
  EXPECT_EQ(job.precision.gradients, DataType::bfloat16);
  EXPECT_EQ(job.precision.optimizer, "sgd");
  EXPECT_EQ(job.collectives.algorithm(Func::all_reduce), "ring");
  EXPECT_EQ(job.collectives.algorithm(Func::broadcast), "auto");
  EXPECT_EQ(job.collectives.channels, 4);
  EXPECT_EQ(job.collectives.slice_bytes, 512u << 10);
  EXPECT_EQ(job.collectives.credits, 8u);
  EXPECT_EQ(job.fabric.kind, FabricKind::ofi);
  EXPECT_EQ(job.fabric.provider, "tcp;ofi_rxm");
  EXPECT_EQ(job.fabric.bind, "10.0.0.1");
  EXPECT_EQ(job.fabric.colocated, Colocated::model);
  EXPECT_EQ(job.fabric.payload, PayloadMode::copied);
  EXPECT_TRUE(job.placement.cyclic);
  EXPECT_EQ(job.dilation, 12.5);
  EXPECT_EQ(job.parallel.micro_batch, 3);
  EXPECT_EQ(job.parallel.launch, Launch::flat);
  EXPECT_EQ(job.run.iterations, 9);
  EXPECT_EQ(job.run.warmup, 0);
  EXPECT_EQ(job.run.min_seconds, 1.5);
  EXPECT_TRUE(job.run.verify);
  EXPECT_EQ(job.run.seed, 7u);
  EXPECT_EQ(job.run.jitter, 0.1);
  EXPECT_EQ(job.run.stall_timeout_s, 2.5);
  EXPECT_EQ(job.run.shards, 2);
}

TEST(Config, ReadsWhenARunEndsAndWhatItMustNotExceed) {
  const JobSpec timed = load_text(kHead + "run: {duration: 1.5h}\n").spec;
  EXPECT_EQ(timed.run.end.duration, 5400);
  EXPECT_EQ(timed.run.iterations, 5) << "at least";
  const JobSpec until =
      load_text(kHead + "run: {until: {ci95_percent: 0.5, max_seconds: 60}}\n").spec;
  EXPECT_EQ(until.run.end.ci95, 0.005);
  EXPECT_EQ(until.run.end.max_seconds, 60);
  EXPECT_EQ(until.run.iterations, 30);
  EXPECT_EQ(
      load_text(kHead + "run: {iterations: 40, until: {ci95_percent: 1}}\n").spec.run.iterations,
      40);
  EXPECT_FALSE(load_text(kHead).spec.run.end.is_open());
  EXPECT_EQ(load_text(kHead + "fabric: {kind: ofi}\nsafety: {max_rate_per_nic: 2.5Gbps}\n")
                .spec.max_nic_bps,
            2.5e9);
}

TEST(ConfigJson, LoadsAgainToTheSameJob) {
  const test::Folder folder;
  folder.write("net.csv", "0,7,1,2\n1,8,3,4\n");
  const std::string layers =
      "model: {kind: layers, layers: [{parameters: [5000]}]}\nfabric: {kind: virtual}\n";
  const std::vector<std::string> jobs{
      kHead + "cluster: {base: dgx-a100-200g, nic: {rate: 33.3Gbps}}\nrun: {seed: 5}\n",
      "model: " + folder.path("net.csv") + "\nscale: {dilation: 3}\n",
      "model: {kind: layers, name: \"1.10\", layers: [{name: 'true', parameters: [5], "
      "forward_us: 1.10}]}\n",
      "model: {base: gpt2, layers: 2}\ndevice: {base: h100-sxm, efficiency: 0.41}\n",
      // Beside each of these the job may not give certain keys, whose defaults the config has.
      layers + "cluster: {topology: {kind: leaf_spine, uplink_rate: 90Gbps}}\n",
      layers + "collectives: {allreduce: omnireduce}\nservers: {count: 2}\n" +
          "tensors: {overlap: \"shares: [0.4, 0.1, 0.5]\\n\"}\n",
      layers + "parallel: {framework: byteps}\nservers: {count: 2}\n" +
          "compression: {method: topk}\n"};
  for (const std::string& text : jobs) {
    const LoadedJob first = load_text(text);
    const LoadedJob again = load_text(first.config_json);
    EXPECT_EQ(again.config_json, first.config_json);
    EXPECT_EQ(again.spec.model_name, first.spec.model_name);
    EXPECT_EQ(again.spec.model->parameters(), first.spec.model->parameters());
    EXPECT_EQ(again.spec.model->layers[0].forward, first.spec.model->layers[0].forward);
    EXPECT_EQ(again.spec.cluster.nic.rate_bps, first.spec.cluster.nic.rate_bps);
    EXPECT_EQ(again.spec.dilation, first.spec.dilation);
  }
}

TEST(ConfigJson, HoldsTheTextsOfFilesThatKeysName) {
  const test::Folder folder, elsewhere;
  folder.write("rates.csv", "seconds,rate\n0,90Gbps\n");
  folder.write("links.csv", "from,to,rate\nn0-1,a\nn2-3,b\na,b,400Gbps\n");
  folder.write("links.json", R"({"links": [{"from": "n0-3", "to": "a"}]})");
  folder.write("places.txt", "0-3 4-7\n");
  folder.write("bins.csv", "magnitude,count\n0.001,10\n");
  folder.write("overlap.yaml", "schema: ghostrank/overlap/1\nshares: [0.5, 0.2, 0.1, 0.1, 0.1]\n");
  folder.write("costs.csv", "method,elements,compress_ns,decompress_ns\ndgc,1000,1,2\n");
  const std::string head =
      "model: {kind: layers, layers: [{parameters: [5000]}]}\nfabric: {kind: virtual}\n"
      "cluster: {nodes: 4, gpus_per_node: 1, nics_per_node: 1, ";
  const std::string payload =
      "compression: {method: dgc, costs: costs.csv}\ntensors: {distribution: ";
  const std::vector<std::pair<std::string, std::vector<std::string>>> jobs{
      {head + "nic: {rate: 100Gbps, rates: rates.csv}, topology: {kind: links.csv}}\n" + payload +
           "measured bins.csv}\n",
       {"rates.csv", "links.csv", "bins.csv", "costs.csv"}},
      {head + "nic: {rate: 100Gbps}, topology: {kind: links.json}}\n" + payload +
           "[{tensors: '*', law: measured bins.csv}]}\n",
       {"links.json", "bins.csv"}},
      {head + "topology: {kind: leaf_spine, leaves: 2, places: 8, placement: places.txt}}\n",
       {"places.txt"}},
      {head + "}\ncollectives: {allreduce: sparcml}\ntensors: {overlap: overlap.yaml}\n",
       {"overlap.yaml"}}};
  for (const auto& [text, files] : jobs) {
    const std::string path = folder.write("job.yaml", text);
    const std::string config = load_job(path, {}).config_json;
    const LoadedJob again = load_job(elsewhere.write("job.json", config), {});
    EXPECT_EQ(again.config_json, config);
    for (const std::string& file : files) {
      EXPECT_EQ(config.find(file), std::string::npos) << config;
      std::ifstream in(folder.path(file));
      const std::string before{std::istreambuf_iterator<char>(in), {}};
      folder.write(file, before + (file.ends_with(".txt") ? "\n" : "\n# another\n"));
      EXPECT_NE(load_job(path, {}).config_json, config) << file;
      folder.write(file, before);
    }
  }
}

// A time for an external switch claims that the switch is guarded.
TEST(ConfigJson, ClaimsNothingOfAnExternalSwitchThatTheJobDoesNot) {
  for (const bool claims : {false, true}) {
    const LoadedJob first = load_text(
        kHead + "cluster: {nodes: 2}\nfabric: {kind: ofi}\ncollectives: {allreduce: switchml}\n" +
        "switch: {target: external, address: 10.0.0.254" +
        (claims ? ", fallback_after_us: 1000000}" : "}"));
    EXPECT_EQ(first.spec.collectives.in_switch.guarded, claims);
    EXPECT_EQ(load_text(first.config_json).spec.collectives.in_switch.guarded, claims);
  }
}

TEST(ConfigJson, IsReplayedFromAResult) {
  const LoadedJob first = load_text(kHead + "run: {iterations: 17}\n");
  const LoadedJob again = load_text(
      "{\"schema\": \"ghostrank/result/1\", \"version\": \"0\", \"config\": " + first.config_json +
          ", \"ranks\": 8}",
      {"run.seed=9"});
  EXPECT_EQ(again.spec.run.iterations, 17);
  EXPECT_EQ(again.spec.run.seed, 9u);
}

TEST(Config, ListsEveryKeyThatWorks) {
  const LoadedJob job = load_text(kHead);
  std::size_t available = 0;
  for (const Key& key : job_keys()) available += key.available;
  EXPECT_EQ(job.entries.size(), available);
  EXPECT_EQ(entry(job, "cluster.nic.rate").value, "400Gbps");
  EXPECT_EQ(entry(job, "scale.dilation").value, "auto");
}

TEST(Config, AcceptsAutoForEveryFunction) {
  int tried = 0;
  for (const Key& key : job_keys())
    if (key.path.starts_with("collectives.") && key.standard == "auto") {
      EXPECT_EQ(test::load_error(kHead, {std::string(key.path) + "=auto"}), "") << key.path;
      ++tried;
    }
  EXPECT_GT(tried, 5);
}

TEST(ShippedJobs, Load) {
  for (const char* name :
       {"gpt2-xl-ddp", "gpt2-xl-hgx-rails", "gpt3-175b-megatron", "gpt3-175b-megatron-cut",
        "quickstart-resnet50", "resnet50-kfac", "verify-small"})
    EXPECT_GT(plan_workload(load_job(name, {}).spec).ranks, 1) << name;
  int loaded = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(GHOSTRANK_SOURCE_DIR "/profiles/jobs")) {
    const std::string path = entry.path();
    if (!path.ends_with(".yaml")) continue;
    EXPECT_EQ(test::error_of([&] { load_job(path, {}); }), "") << path;
    ++loaded;
  }
  EXPECT_GT(loaded, 20);
}

}  // namespace
}  // namespace ghostrank
