// Real traces of other projects: the import has the operations that an independent decoder
// (decode.py) counts, and every trace plays. Skipped without the data.
#include <cstdlib>
#include <filesystem>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "profiles/load/load.h"
#include "profiles/trace/trace_file.h"
#include "tests/shell.h"
#include "tests/trace/traces.h"

namespace ghostrank {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Outcome;
using test::shell;

// The data folder as tests/README.md describes it, else the one beside the checkout.
std::string data() {
  const char* named = std::getenv("GHOSTRANK_TEST_DATA");
  return std::string(named ? named : GHOSTRANK_SOURCE_DIR "/../shared/data") + "/traces/";
}

struct Sample {
  const char *name, *format, *files;
  int ranks;              // 0: the trace has the number
  const char* more = "";  // keys of the job
};
void PrintTo(const Sample& sample, std::ostream* out) { *out << sample.files; }

class Samples : public testing::TestWithParam<Sample> {
 protected:
  void SetUp() override {
    if (!fs::exists(data())) GTEST_SKIP() << "there is no " << data();
  }
  // For an archive, the path of the trace inside it.
  std::string files() {
    const std::string path = data() + GetParam().files;
    if (!path.ends_with(".tar.gz")) return path;
    EXPECT_EQ(shell("tar -C '" + folder.path("") + "' -xzf '" + path + "'").status, 0);
    return folder.path("tests/data/chakra.0.et");
  }
  test::Folder folder;
};

TEST_P(Samples, AreCountedAsAnIndependentDecoderDoes) {
  if (shell("python3 -c ''").status != 0) GTEST_SKIP() << "there is no python3";
  const Sample& sample = GetParam();
  const std::string from = files();
  const Outcome decoded = shell("python3 '" GHOSTRANK_SOURCE_DIR "/tests/trace/decode.py' " +
                                std::string(sample.format) + " " + from);
  ASSERT_EQ(decoded.status, 0) << decoded.text;
  const Outcome imported = shell(GHOSTRANK_BINARY " profile import " + from + " --json -");
  ASSERT_EQ(imported.status, 0) << imported.text;
  const json expected = json::parse(decoded.text), found = json::parse(imported.text);
  EXPECT_EQ(found["ops"], expected["ops"]);
  EXPECT_EQ(found["bytes"], expected["bytes"]);
  EXPECT_EQ(found["format"], sample.format);
}

TEST_P(Samples, PlayInVirtualTime) {
  const Sample& sample = GetParam();
  const std::string job = folder.write(
      "job.yaml",
      "trace: '" + files() +
          "'\ndevice: h100-sxm\nfabric: {kind: virtual}\nrun: {iterations: 1, warmup: 0}\n" +
          "cluster: {gpus_per_node: 1, nics_per_node: 1, nodes: " + std::to_string(sample.ranks) +
          "}\n" + sample.more);
  const Outcome played = shell(GHOSTRANK_BINARY " run " + job + " --json -");
  ASSERT_EQ(played.status, 0) << played.text;
}

INSTANTIATE_TEST_SUITE_P(
    Of, Samples,
    testing::Values(
        Sample{"astra_sim_4", "chakra", "astra-sim/all_reduce/4npus_1MB/*.et", 4},
        Sample{"astra_sim_16", "chakra", "astra-sim/all_reduce/16npus_1MB/*.et", 16},
        Sample{"mlsynth", "chakra", "mlsynth", 4},
        Sample{"feeder", "chakra", "chakra/feeder_tests_trace.tar.gz", 8},
        Sample{"resnet", "pytorch-et", "param/1.0.3-chakra.0.0.4_resnet_1gpu_et.json.gz", 1},
        Sample{"simai", "simai", "simai/microAllReduce.txt", 8},
        Sample{"micro", "simai", "aicb/all_reduce.txt", 8},
        Sample{"gpt_13b_txt", "simai", "aicb/G13B-M1-C01_GPT13B_megatron_tp8_pp1_mbs1_A100.txt",
               16},
        Sample{"gpt_13b_csv", "aicb", "aicb/G13B-M1-C01_GPT13B_megatron_tp8_pp1_mbs1.csv", 128}),
    [](const auto& of) { return std::string(of.param.name); });

// A program exported as messages and imported again has the same bytes and times, up to GOAL's
// whole nanoseconds.
TEST(TracesThroughGoal, ComeBackAsTheyWere) {
  const test::Folder folder;
  const std::string job =
      "cluster: {gpus_per_node: 1, nics_per_node: 1, nodes: 2}\nfabric: {kind: virtual}\n"
      "run: {iterations: 1, warmup: 0}\ntrace: ";
  const std::string original = folder.write(
      "a.yaml", job + "'" GHOSTRANK_SOURCE_DIR "/tests/fuzz/corpus/trace_kineto/overlap'\n");
  const std::string goal = folder.path("step.goal");
  ASSERT_EQ(shell(GHOSTRANK_BINARY " plan " + original + " --export goal --output " + goal).status,
            0);
  const std::string again = folder.write("b.yaml", job + goal + "\n");
  json results[2];
  for (int i = 0; i < 2; ++i) {
    const Outcome played = shell(GHOSTRANK_BINARY " run --json - " + (i == 0 ? original : again));
    ASSERT_EQ(played.status, 0) << played.text;
    results[i] = json::parse(played.text);
  }
  EXPECT_GT(results[0]["traffic"]["wire_bytes_per_iteration"], 0);
  EXPECT_EQ(results[0]["traffic"], results[1]["traffic"]);
  EXPECT_NEAR(results[0]["step_time"]["median"].get<double>(),
              results[1]["step_time"]["median"].get<double>(), 1e-8);
  // A profile no longer says that it was GOAL, so its notes say how to play it.
  const Outcome imported =
      shell(GHOSTRANK_BINARY " profile import " + goal + " -o " + folder.path("profile.yaml"));
  EXPECT_NE(imported.text.find("collectives.send_recv: generic/direct"), std::string::npos)
      << imported.text;
}

// Factors and inverses of K-FAC go out in many calls at once, whose messages leave a NIC one after
// the other: in another order the step takes 12 % more.
TEST(TracesThroughGoal, KeepTheOrderInWhichMessagesTakeANic) {
  const test::Folder folder;
  const std::string cluster =
      "cluster: {nodes: 4, gpus_per_node: 1, nics_per_node: 1, nic: {rate: 10Gbps}}\n"
      "fabric: {kind: virtual}\nrun: {iterations: 1, warmup: 1}\n";
  const std::string original =
      folder.write("a.yaml", cluster +
                                 "model: resnet50\ndevice: h100-sxm\nprecision: {optimizer: sgd}\n"
                                 "parallel: {framework: kfac, variant: spd, micro_batch: 32}\n");
  const std::string goal = folder.path("step.goal");
  ASSERT_EQ(shell(GHOSTRANK_BINARY " plan " + original + " --export goal --output " + goal).status,
            0);
  const std::string again = folder.write("b.yaml", cluster + "trace: " + goal + "\n");
  double steps[2];
  for (int i = 0; i < 2; ++i) {
    const Outcome played = shell(GHOSTRANK_BINARY " run --json - " + (i == 0 ? original : again));
    ASSERT_EQ(played.status, 0) << played.text;
    steps[i] = json::parse(played.text)["step_time"]["median"];
  }
  EXPECT_NEAR(steps[1], steps[0], 1e-4 * steps[0]);
}

// Some editors begin a text with a byte-order mark. What a file says, and where its errors are,
// does not depend on it.
TEST(ByteOrderMark, IsNoPartOfATrace) {
  const test::Folder folder;
  const std::string mark = "\xef\xbb\xbf";
  const auto imported = [&](const std::string& text) {
    const std::string file = folder.write("trace.0", text);
    std::string out;
    const std::string error = test::error_of([&] {
      const Trace trace = import_trace({file}, "", 0);
      out = trace.format;
      for (const auto& [op, bytes] : summary_of(trace, 4).stated)
        out += " " + op + " " + std::to_string(bytes);
    });
    return out + error;
  };
  std::set<std::string> formats;
  for (const auto& entry :
       fs::recursive_directory_iterator(GHOSTRANK_SOURCE_DIR "/tests/fuzz/corpus")) {
    const std::string folder_name = entry.path().parent_path().filename().string();
    if (!folder_name.starts_with("trace_") || folder_name == "trace_chakra" ||
        folder_name == "trace_nsys" || entry.path().filename() == "binary")
      continue;
    const std::string text = test::read_file(entry.path().string());
    EXPECT_EQ(imported(mark + text), imported(text)) << entry.path();
    formats.insert(folder_name);
  }
  EXPECT_EQ(formats.size(), 9U);
  EXPECT_EQ(trace_head(folder.write("groups.json", mark + "{}"), 1), "{");
}

TEST(LayersAsATrace, BecomeAModel) {
  const std::string path = data() + "switchml/dnn_benchmark_example.csv";
  if (!fs::exists(path)) GTEST_SKIP() << "there is no " << path;
  const test::Folder folder;
  const Outcome imported = shell(GHOSTRANK_BINARY " profile import " + path + " -o " +
                                 folder.path("m.yaml") + " --json -");
  ASSERT_EQ(imported.status, 0) << imported.text;
  EXPECT_EQ(json::parse(imported.text)["used_events"], 10);
  const LoadedJob job = load_job(
      folder.write("job.yaml", "cluster: {nodes: 1, gpus_per_node: 2}\ntrace: m.yaml\n"), {});
  ASSERT_TRUE(job.spec.model);
  EXPECT_EQ(job.spec.model->layers.size(), 10U);
}

}  // namespace
}  // namespace ghostrank
