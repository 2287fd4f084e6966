#include "tools/report/pictures/schedule_picture.h"

#include <cmath>
#include <regex>

#include <gtest/gtest.h>

namespace ghostrank {
namespace {

struct Point {
  double x, y;
};

std::string picture_of(const char* library, Func func, const char* algorithm, int ranks,
                       const Communicator& comm = {}, std::uint64_t count = 1024) {
  const Algorithm* row = find_algorithm(library, func, algorithm);
  const auto schedule = row->make({func, ranks, count, 4, 0, {}}, comm);
  return schedule_svg(*schedule, "a title", comm.node_of);
}

// Centres of the ranks' circles in all panels, in the picture's order.
std::vector<Point> places(const std::string& svg) {
  std::vector<Point> out;
  const std::regex circle("<circle cx=\"([0-9.]+)\" cy=\"([0-9.]+)\"");
  for (std::sregex_iterator at(svg.begin(), svg.end(), circle), end; at != end; ++at)
    out.push_back({std::stod((*at)[1]), std::stod((*at)[2])});
  return out;
}

std::size_t count(const std::string& svg, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = svg.find(what, at)) != std::string::npos; ++at) ++found;
  return found;
}

TEST(SchedulePicture, HasAnArrowForEveryPairThatARingUses) {
  const std::string svg = picture_of("generic", Func::all_reduce, "ring", 6);
  EXPECT_EQ(places(svg).size(), 6u);
  EXPECT_EQ(count(svg, "<title>"), 6u);
  EXPECT_NE(svg.find("<title>5 to 0: 10 messages, 6.668 KiB</title>"), std::string::npos) << svg;
}

TEST(SchedulePicture, DrawsATreeFromItsRootDown) {
  const std::string svg = picture_of("generic", Func::broadcast, "binomial", 8);
  const std::vector<Point> at = places(svg);
  ASSERT_EQ(at.size(), 8u);
  EXPECT_EQ(count(svg, "<title>"), 7u);
  for (std::size_t r = 1; r < 8; ++r) EXPECT_GT(at[r].y, at[0].y) << r;
  // 0 sends to 4, 2 and 1; 4 to 6 and 5; 2 to 3; 6 to 7.
  EXPECT_EQ(at[4].y, at[1].y);
  EXPECT_EQ(at[6].y, at[3].y);
  EXPECT_GT(at[7].y, at[6].y);
}

// Two trees, over which partial sums go up and the sum comes down.
TEST(SchedulePicture, FindsTheRootsOfADoubleTree) {
  const int ranks = 8;
  const std::string svg = picture_of("generic", Func::all_reduce, "double_tree", ranks);
  const std::vector<Point> at = places(svg);
  ASSERT_EQ(at.size(), 2u * ranks);
  EXPECT_EQ(count(svg, "<title>"), 2u * 2 * (ranks - 1));
  for (std::size_t tree = 0; tree < 2; ++tree) {
    std::size_t top = 0;
    for (std::size_t r = 0; r < ranks; ++r)
      if (at[tree * ranks + r].y < at[tree * ranks + top].y) top = r;
    EXPECT_EQ(top, tree == 0 ? 7u : 0u);
  }
}

TEST(SchedulePicture, HasAPanelForChannelsThatAreNotAlike) {
  Communicator comm;
  for (int r = 0; r < 16; ++r) comm.node_of.push_back(r / 8);
  comm.node = "hgx-h100-400g";
  comm.channels = 0;
  const std::string svg = picture_of("nccl-2.30", Func::all_reduce, "ring", 16, comm, 64 << 20);
  const std::size_t panels = count(svg, ">channel ") + count(svg, ">channels ");
  EXPECT_GT(panels, 1u);
  EXPECT_EQ(places(svg).size(), 16 * panels);
  EXPECT_EQ(count(svg, "<title>"), 16 * panels);
  EXPECT_EQ(count(svg, "#c6dbef"), 8 * panels);  // one node's ranks have one colour
}

TEST(SchedulePicture, DrawsManyRanksApart) {
  for (const char* algorithm : {"ring", "double_tree"}) {
    const std::vector<Point> at = places(picture_of("generic", Func::all_reduce, algorithm, 128));
    for (std::size_t i = 0; i < 128; ++i)
      for (std::size_t j = 0; j < i; ++j)
        EXPECT_GE(std::hypot(at[i].x - at[j].x, at[i].y - at[j].y), 22)
            << algorithm << " " << i << " " << j;
  }
}

// A panel of several channels says what crosses all of them.
TEST(SchedulePicture, SaysAllThatARankSends) {
  Communicator comm;
  for (int r = 0; r < 16; ++r) comm.node_of.push_back(r / 8);
  comm.node = "hgx-h100-400g";
  comm.channels = 0;
  const std::string svg = picture_of("nccl-2.30", Func::all_reduce, "ring", 16, comm, 64 << 20);
  const auto schedule = find_algorithm("nccl-2.30", Func::all_reduce, "ring")
                            ->make({Func::all_reduce, 16, 64 << 20, 4, 0, {}}, comm);
  std::uint64_t sent = 0, drawn = 0;
  for (int a = 0; a < schedule->actors(3); ++a)
    for (int k = 0; k < schedule->actor(3, a).steps; ++k) {
      const Step step = schedule->step(3, a, k);
      sent += step.slices * step.send_to.size();
    }
  const std::regex from_3("<title>3 to [0-9]+: ([0-9,]+) messages");
  for (std::sregex_iterator at(svg.begin(), svg.end(), from_3), end; at != end; ++at) {
    std::string number = (*at)[1];
    std::erase(number, ',');
    drawn += std::stoull(number);
  }
  EXPECT_EQ(drawn, sent);
  EXPECT_NE(svg.find(" on these channels together</title>"), std::string::npos);
}

TEST(SchedulePicture, OfOneRankHasNoArrows) {
  EXPECT_EQ(count(picture_of("generic", Func::all_reduce, "ring", 1), "<title>"), 0u);
}

}  // namespace
}  // namespace ghostrank
