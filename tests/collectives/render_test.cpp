// Golden renderings of schedules that are small enough to check by hand.
#include "collectives/exchange/render.h"

#include <gtest/gtest.h>

#include "collectives/schedule.h"

namespace ghostrank {
namespace {

std::unique_ptr<Schedule> ring(std::uint64_t count, const Communicator& comm = {}) {
  return find_algorithm("generic", Func::all_reduce, "ring")
      ->make({Func::all_reduce, 3, count, 4, 0}, comm);
}

TEST(Picture, ShowsARingStepByStep) {
  EXPECT_EQ(picture(*ring(8), 1),
            "allreduce, rank 1 of 3, count 8 x 4 bytes\n"
            "channel  step  from    does  elements  to  elements  bytes  messages\n"
            "      0     0                           2    [0, 3)     12         1\n"
            "      0     1     0  reduce    [6, 8)   2    [6, 8)      8         1\n"
            "      0     2     0  reduce    [3, 6)   2    [3, 6)     12         1\n"
            "      0     3     0    copy    [0, 3)   2    [0, 3)     12         1\n"
            "      0     4     0    copy    [6, 8)                              1\n");
}

TEST(Picture, LeavesOutStepsWithoutPeers) {
  const Collective c{Func::reduce, 4, 5, 2, 1};
  EXPECT_EQ(picture(*find_algorithm("generic", c.func, "auto")->make(c, {}), 2),
            "reduce, rank 2 of 4, count 5 x 2 bytes, root 1\n"
            "channel  step  from  does  elements  to  elements  bytes  messages\n"
            "      0     0                         1    [0, 5)     10         1\n");
}

TEST(Json, CountsRunsOfEqualMessages) {
  EXPECT_EQ(to_json(*ring(8), 1),
            R"({"sends": [{"channel": 0, "peer": 2, "messages": [[12, 1], [8, 1], [12, 2]]}], )"
            R"("recvs": [{"channel": 0, "peer": 0, "messages": [[8, 1], [12, 2], [8, 1]]}]})");
}

TEST(Json, KeepsEmptyMessages) {
  EXPECT_EQ(to_json(*ring(1), 0),
            R"({"sends": [{"channel": 0, "peer": 1, "messages": [[0, 2], [4, 1], [0, 1]]}], )"
            R"("recvs": [{"channel": 0, "peer": 2, "messages": [[0, 1], [4, 1], [0, 2]]}]})");
}

TEST(Json, ListsConnectionsByChannelAndPeer) {
  EXPECT_EQ(to_json(*ring(6, {{}, 2, 0, {}}), 0),
            R"({"sends": [{"channel": 0, "peer": 1, "messages": [[4, 4]]}, )"
            R"({"channel": 1, "peer": 1, "messages": [[4, 4]]}], )"
            R"("recvs": [{"channel": 0, "peer": 2, "messages": [[4, 4]]}, )"
            R"({"channel": 1, "peer": 2, "messages": [[4, 4]]}]})");
}

TEST(Json, IsEmptyForAGroupOfOne) {
  const Collective c{Func::all_reduce, 1, 5, 4, 0};
  EXPECT_EQ(to_json(*find_algorithm("generic", c.func, "ring")->make(c, {}), 0),
            R"({"sends": [], "recvs": []})");
}

}  // namespace
}  // namespace ghostrank
