// Results of jobs that name files: their hash stands for what the files hold, wherever they are,
// and a replay finds them and says that they have changed.
#include "profiles/load/named_files.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "profiles/load/load.h"
#include "tests/shell.h"
#include "tests/tools/sample.h"

namespace ghostrank {
namespace {

using Json = nlohmann::json;
using test::contents;
using test::put;
using test::Scratch;

const std::string kCluster =
    "cluster: {nodes: 4, gpus_per_node: 1, nics_per_node: 1}\n"
    "fabric: {kind: virtual}\nrun: {iterations: 1}\n";
const std::string kProgram =
    "program:\n"
    "  ranks: 4\n"
    "  groups: {all: [0-3]}\n"
    "  roles:\n"
    "    - name: one\n"
    "      ranks: 0-3\n"
    "      iterations:\n"
    "        - all: |\n"
    "            allreduce all float32 100000 sum\n";

// A folder with a job of all kinds of named files, and what it is played from.
struct Place {
  const Scratch folder;

  explicit Place(const std::string& program = kProgram) {
    put(folder / "program.yaml", program);
    put(folder / "job.yaml",
        kCluster + "program: program.yaml\ncollectives: {allreduce: mine.xml}\n");
    EXPECT_EQ(test::shell(GHOSTRANK_BINARY " schedule allreduce --ranks 4 --algorithm ring "
                                           "--export msccl --output " +
                          folder / "mine.xml")
                  .status,
              0);
  }
  // Plays a job or a result from another folder; returns the result.
  Json play(const std::string& job, const std::string& json) const {
    const test::Outcome o =
        test::shell("cd / && " GHOSTRANK_BINARY " run " + job + " --quiet --json " + json);
    EXPECT_EQ(o.status, 0) << o.text;
    return o.status == 0 ? Json::parse(contents(json)) : Json();
  }
  Json play() const { return play(folder / "job.yaml", folder / "result.json"); }
};

TEST(NamedFiles, MakeTheHashByWhatTheyHoldAndNotByTheirPlace) {
  const Place here, there;
  const std::string hash = here.play()["hash"];
  EXPECT_EQ(there.play()["hash"], hash);
  put(there.folder / "mine.xml", contents(there.folder / "mine.xml") + "<!-- another -->\n");
  EXPECT_NE(there.play()["hash"], hash);
  std::string program = kProgram;
  EXPECT_NE(Place(program.replace(program.find("100000"), 6, "100004")).play()["hash"], hash);
}

TEST(NamedFiles, OfAResultAreFoundFromAnywhereAndToldWhenTheyHaveChanged) {
  const Place place;
  const Scratch elsewhere;
  const auto notes = [](const Json& result) {
    std::string text;
    for (const std::string note : result["notes"])
      if (note.find(": its content is not that of the result's run") != std::string::npos)
        text += note.substr(note.rfind('/', note.find(": its")) + 1, 4) + " ";
    return text;
  };
  const Json first = place.play();
  EXPECT_EQ(notes(first), "");
  EXPECT_EQ(first["files"]["mine.xml"]["path"], place.folder / "mine.xml");
  std::filesystem::copy_file(place.folder / "result.json", elsewhere / "result.json");
  const auto again = [&] {
    return place.play(elsewhere / "result.json", elsewhere / "again.json");
  };
  EXPECT_EQ(again()["hash"], first["hash"]);
  EXPECT_EQ(notes(again()), "");
  put(place.folder / "mine.xml", contents(place.folder / "mine.xml") + "<!-- another -->\n");
  EXPECT_EQ(notes(again()), "mine ");
  std::string program = kProgram;
  put(place.folder / "program.yaml", program.replace(program.find("100000"), 6, "100004"));
  EXPECT_EQ(notes(again()), "mine prog ");
}

TEST(NamedFiles, OfOneOfSeveralJobsMakeTheHashOfItsReplay) {
  const Place place;
  const Scratch outer;
  std::filesystem::create_directory_symlink(place.folder / ".", outer / "own");
  put(outer / "both.yaml",
      "cluster: {nodes: 8, gpus_per_node: 1, nics_per_node: 1}\n"
      "fabric: {kind: virtual}\nrun: {iterations: 1}\n"
      "jobs: [{name: a, file: own/job.yaml, nodes: 0-3}, {name: b, file: own/job.yaml, nodes: "
      "4-7}]\n");
  const Json first = place.play(outer / "both.yaml", outer / "result.json");
  EXPECT_EQ(first["files"].size(), 2U) << first["files"];
  EXPECT_EQ(place.play(outer / "result.json", outer / "again.json")["hash"], first["hash"]);
}

TEST(NamedFiles, OfATraceAreAllThatAPatternNames) {
  const Scratch folder;
  const std::string goal = "num_ranks 1\nrank 0 {\nl1: calc 1000\n}\n";
  put(folder / "a.goal", goal);
  put(folder / "job.yaml",
      "cluster: {nodes: 1, gpus_per_node: 1, nics_per_node: 1}\nfabric: {kind: virtual}\n"
      "trace: '*.goal'\n");
  const auto hash = [&] {
    const LoadedJob job = load_job(folder / "job.yaml", {});
    const NamedFiles files = named_files(job);
    EXPECT_EQ(files.size(), 1U);
    EXPECT_TRUE(files.contains(folder / "*.goal"));
    const std::string text = with_contents(job.config_json, files);
    EXPECT_EQ(text.find("*.goal"), std::string::npos);
    return text;
  };
  const std::string before = hash();
  EXPECT_EQ(hash(), before);
  put(folder / "a.goal", "// another\n" + goal);
  EXPECT_NE(hash(), before);
}

TEST(NamedFiles, OfATraceAreThoseInAFolderHoweverItIsWritten) {
  const Scratch folder;
  std::filesystem::create_directory(folder / "traces");
  const std::string goal = "num_ranks 1\nrank 0 {\nl1: calc 1000\n}\n";
  for (const char* written : {"traces", "traces/", "./traces//"}) {
    SCOPED_TRACE(written);
    put(folder / "job.yaml",
        "cluster: {nodes: 1, gpus_per_node: 1, nics_per_node: 1}\nfabric: {kind: virtual}\n"
        "trace: " +
            std::string(written) + "\n");
    const auto hash = [&](const std::string& text) {
      put(folder / "traces/a.goal", text);
      const NamedFiles files = named_files(load_job(folder / "job.yaml", {}));
      return files.empty() ? "" : files.begin()->second.hash;
    };
    EXPECT_NE(hash(goal), hash("// another\n" + goal));
  }
}

TEST(NamedFiles, AreStringsOfTheirOwn) {
  const NamedFiles files{{"a.xml", {"/a.xml", "01"}}, {"b\"c", {"/b", "02"}}};
  const Json json{{"a.xml", "a.xml"}, {"b", {"b\"c", "\\", "a.xml of \"a.xml\""}}};
  EXPECT_EQ(with_contents(json.dump(), files),
            (Json{{"01", "01"}, {"b", {"02", "\\", "a.xml of \"a.xml\""}}}.dump()));
  EXPECT_EQ(with_contents(json.dump(), {}), json.dump());
}

}  // namespace
}  // namespace ghostrank
