// The generated files agree with the tables. GHOSTRANK_UPDATE=1 rewrites them.
#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

#include "profiles/input/yaml.h"
#include "profiles/load/job_schema.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

const std::string kRoot = GHOSTRANK_SOURCE_DIR;

bool updating() { return std::getenv("GHOSTRANK_UPDATE") != nullptr; }

void expect_file(const std::string& path, const std::string& text) {
  if (updating()) std::ofstream(path, std::ios::binary) << text;
  EXPECT_EQ(test::read_file(path), text) << path << ": run test_profiles with GHOSTRANK_UPDATE=1";
}

TEST(GeneratedFiles, JsonSchemasAreThoseOfTheTables) {
  expect_file(kRoot + "/profiles/schema/job.schema.json", job_json_schema());
  expect_file(kRoot + "/profiles/schema/model.schema.json", model_json_schema());
  expect_file(kRoot + "/profiles/schema/device.schema.json", device_json_schema());
}

TEST(GeneratedFiles, TheReferenceOfTheJobFormatIsThatOfTheTables) {
  const std::string path = kRoot + "/docs/job-format.md";
  const std::string begin = "<!-- keys: begin -->\n", end = "<!-- keys: end -->";
  const std::string text = test::read_file(path);
  const auto from = text.find(begin), to = text.find(end);
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  expect_file(path,
              text.substr(0, from) + begin + "\n" + job_format_markdown() + "\n" + text.substr(to));
}

TEST(JsonSchema, KnowsEveryKeyThatMayBeGiven) {
  const YamlValue schema =
      parse_yaml(job_json_schema(), std::make_shared<Source>(Source{"schema", "schema", true}));
  for (const Key& key : job_keys()) {
    const YamlValue* at = &schema;
    std::string path(key.path);
    for (std::size_t dot = 0; at && dot != std::string::npos;) {
      dot = path.find('.');
      at = at->find("properties") ? at->find("properties")->find(path.substr(0, dot)) : nullptr;
      if (dot != std::string::npos) path = path.substr(dot + 1);
    }
    const bool given_nothing = !key.available && key.standard == kAbsent;
    EXPECT_EQ(at == nullptr, given_nothing) << key.path;
  }
}

TEST(Tables, HaveAMeaningForEveryKeyAndDefaultsThatAreAllowed) {
  for (const Key& key : job_keys()) {
    EXPECT_FALSE(key.doc.empty()) << key.path;
    if (key.type == KeyType::choice) {
      const auto allowed = words(key.allowed);
      EXPECT_NE(std::find(allowed.begin(), allowed.end(), key.standard), allowed.end()) << key.path;
    }
  }
}

}  // namespace
}  // namespace ghostrank
