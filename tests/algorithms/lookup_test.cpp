// The algorithm that a name stands for, and the error for a name that stands for none.
#include <gtest/gtest.h>

#include "profiles/algorithms/algorithms.h"
#include "profiles/error.h"
#include "tests/algorithms/support.h"

namespace ghostrank {
namespace {

std::string error_of(const std::string& library, Func func, const std::string& name) {
  Algorithms algorithms;
  try {
    algorithms.resolve(library, func, name);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(AlgorithmNames, AreRowsOfALibraryOrOfTheOneTheyName) {
  Algorithms algorithms;
  EXPECT_EQ(algorithms.resolve("generic", Func::all_reduce, "auto").name, "ring");
  EXPECT_EQ(algorithms.resolve("gloo", Func::all_reduce, "ring").library, "gloo");
  const Algorithm& row = algorithms.resolve("generic", Func::all_gather, "openmpi-4.1/bruck");
  EXPECT_EQ(row.library, "openmpi-4.1");
  EXPECT_EQ(row.name, "bruck");
}

TEST(AlgorithmNames, ThatStandForNothingAreRefusedWithWhatThereIs) {
  EXPECT_EQ(error_of("generic", Func::all_reduce, "rign"),
            "library 'generic' has no allreduce algorithm 'rign'; did you mean ring?");
  EXPECT_NE(error_of("generic", Func::all_reduce, "telepathy").find("it has: auto, ring"),
            std::string::npos);
  EXPECT_NE(error_of("mine", Func::all_reduce, "auto").find("there is no library 'mine'"),
            std::string::npos);
  EXPECT_EQ(error_of("gloo", Func::reduce_scatter, "auto"),
            "library 'gloo' has no reduce_scatter; use allreduce, or reduce and scatter");
  EXPECT_NE(error_of("generic", Func::all_reduce, "nowhere.xml").find("there is no such file"),
            std::string::npos);
}

TEST(AlgorithmNames, OfFilesAreLookedUpHereAndInTheFolderOfTheJob) {
  const testing::TemporaryFile file("ring.xml", testing::fused_ring_xml(4, 2));
  const std::filesystem::path path(file.path());
  Algorithms algorithms;
  const Algorithm& row = algorithms.resolve("generic", Func::all_reduce, path.filename().string(),
                                            path.parent_path().string());
  EXPECT_EQ(row.library, "msccl");
  EXPECT_EQ(row.cost({Func::all_reduce, 4, 10, 4, 0}).messages, 6u);
  EXPECT_EQ(row.cost({Func::all_reduce, 4, 10, 4, 0}).bytes, 240u);
  EXPECT_EQ(row.cost({Func::all_reduce, 4, 10, 4, 0}).steps, 6);
  EXPECT_EQ(algorithms.find("generic", Func::all_reduce, row.name), &row);
  EXPECT_EQ(algorithms.find("generic", Func::all_gather, row.name), nullptr);
  EXPECT_NE(
      error_of("generic", Func::all_gather, file.path()).find("is an algorithm for allreduce"),
      std::string::npos);
}

TEST(AlgorithmFiles, WithOtherContentAreAnotherJob) {
  const testing::TemporaryFile one("one.xml", testing::fused_ring_xml(4, 2));
  const testing::TemporaryFile two("two.xml", testing::fused_ring_xml(4, 3));
  const auto contents = [](const testing::TemporaryFile& file) {
    Algorithms algorithms;
    algorithms.load_file(file.path(), ".");
    return algorithms.contents().substr(file.path().size());
  };
  EXPECT_NE(contents(one), contents(two));
  EXPECT_EQ(contents(one), contents(one));
}

}  // namespace
}  // namespace ghostrank
