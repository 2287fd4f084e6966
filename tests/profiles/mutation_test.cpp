// Damaged jobs: thousands of seeded mutations of the shipped files must load or be refused, and
// nothing else may happen. GHOSTRANK_FUZZ_ROUNDS sets how many per test.
#include <cstdlib>
#include <random>

#include <gtest/gtest.h>

#include "profiles/error.h"
#include "profiles/yaml.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

using Random = std::mt19937;

std::size_t below(Random& random, std::size_t bound) { return random() % bound; }

const char* const kFragments[] = {"[",
                                  "]",
                                  "{",
                                  "}",
                                  ":",
                                  ": ",
                                  "- ",
                                  "\n",
                                  "\t",
                                  "&a ",
                                  "*a",
                                  "!!x ",
                                  "'",
                                  "\"",
                                  "#",
                                  "|",
                                  ">",
                                  "%",
                                  "@",
                                  "? ",
                                  "~",
                                  "-1",
                                  "0",
                                  "1e309",
                                  "nan",
                                  "99999999999999999999",
                                  "layers",
                                  "base: gpt2",
                                  "<<: *a",
                                  "\x00\x01",
                                  "\xff\xfe",
                                  "\xc3",
                                  "…",
                                  "run",
                                  "true",
                                  "auto",
                                  "...",
                                  "---\n",
                                  "schema: ghostrank/result/1\n",
                                  "config: {}\n",
                                  "model: {kind: layers, layers: []}\n",
                                  "\\u0000",
                                  "!2",
                                  "!<",
                                  "? - ",
                                  "&&"};

std::string mutate(std::string text, Random& random) {
  const std::size_t changes = 1 + below(random, 4);
  for (std::size_t i = 0; i < changes && !text.empty(); ++i) {
    const std::size_t at = below(random, text.size());
    switch (below(random, 5)) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, 1 + below(random, 12));
        break;
      case 2:
        text.insert(at, kFragments[below(random, std::size(kFragments))]);
        break;
      case 3:
        text.insert(at, text.substr(below(random, text.size()), below(random, 80)));
        break;
      default:
        text.resize(at);
    }
  }
  return text;
}

int rounds(int otherwise) {
  const char* asked = std::getenv("GHOSTRANK_FUZZ_ROUNDS");
  return asked ? std::atoi(asked) : otherwise;
}

class MutatedJobs : public testing::TestWithParam<std::string> {};

TEST_P(MutatedJobs, LoadOrAreRefused) {
  const test::Folder folder;
  const std::string original =
      test::read_file(std::string(GHOSTRANK_SOURCE_DIR) + "/profiles/" + GetParam());
  const bool is_job = original.find("ghostrank/job/1") != std::string::npos;
  Random random(20240501);
  int loaded = 0, refused = 0;
  for (int i = 0; i < rounds(600); ++i) {
    const std::string path = folder.write("damaged.yaml", mutate(original, random));
    const std::string job =
        is_job ? path : folder.write("job.yaml", "{model: ./damaged.yaml, device: h100-sxm}\n");
    try {
      load_job(job, {});
      ++loaded;
    } catch (const Error& error) {
      ++refused;
      EXPECT_NE(std::string(error.what()), "");
    }
  }
  // Both happen, or the mutations are too weak or too strong to show anything.
  EXPECT_GT(loaded, 10);
  EXPECT_GT(refused, 100);
}

INSTANTIATE_TEST_SUITE_P(All, MutatedJobs,
                         testing::Values("jobs/gpt2-xl-ddp.yaml", "jobs/verify-small.yaml",
                                         "jobs/quickstart-resnet50.yaml", "models/bert-large.yaml",
                                         "models/vgg16.yaml"),
                         [](const auto& param) {
                           std::string name = param.param;
                           for (char& c : name)
                             if (!isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

TEST(MutatedYaml, ParsesOrIsRefused) {
  const auto source = std::make_shared<Source>(Source{"a.yaml", "a.yaml", true});
  Random random(3);
  int parsed = 0;
  for (int i = 0; i < rounds(20'000); ++i) {
    std::string text;
    for (std::size_t n = 1 + below(random, 12); n > 0; --n)
      text += kFragments[below(random, std::size(kFragments))];
    try {
      parse_yaml(mutate(text, random), source);
      ++parsed;
    } catch (const Error& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("a.yaml:")) << error.what();
    }
  }
  EXPECT_GT(parsed, 10);
}

TEST(MutatedFlags, SetOrAreRefused) {
  const std::string original = "cluster={nodes: 16, nic: {rate: 200Gbps, latency_us: 1.5}}";
  Random random(7);
  int loaded = 0;
  for (int i = 0; i < rounds(600); ++i) {
    const std::string flag = mutate(original, random);
    try {
      test::load_text("{model: resnet50, device: h100-sxm}", {flag});
      ++loaded;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(loaded, 0);
}

TEST(MutatedCsv, LoadsOrIsRefused) {
  const test::Folder folder;
  const std::string original =
      "layer_index,numel,forward_pass_ns,backward_pass_ns\n0,12,3,4\n"
      "1,5,6,7\n2,8,9,10\n";
  Random random(11);
  int loaded = 0;
  for (int i = 0; i < rounds(600); ++i) {
    const std::string path = folder.write("net.csv", mutate(original, random));
    try {
      test::model_from(path);
      ++loaded;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(loaded, 10);
}

}  // namespace
}  // namespace ghostrank
