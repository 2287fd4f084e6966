// NCCL's choices. The sizes at which they change were worked out without this code.
#include "collectives/nccl/tuner.h"

#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "collectives/nccl/nccl.h"
#include "tests/collectives/nccl/support.h"

namespace ghostrank {
namespace {

using nccl_testing::nccl_node;

std::string humane(std::uint64_t bytes) {
  const char* units[] = {"K", "M", "G"};
  int unit = 0;
  for (bytes >>= 10; bytes >= 1024; bytes >>= 10) ++unit;
  return std::to_string(bytes) + units[unit];
}

// "tree/LL tree/LL128@256K ...": the choice for 1 KiB, and every change up to 8 GiB.
std::string choices(NcclTunerInput in) {
  std::string text, last;
  for (in.bytes = 1024; in.bytes <= std::uint64_t{8} << 30; in.bytes *= 2) {
    const NcclChoice choice = nccl_choose(in);
    const std::string name =
        std::string(name_of(choice.algorithm)) + '/' + std::string(name_of(choice.protocol));
    if (name == last) continue;
    text += (text.empty() ? "" : " ") + name + (text.empty() ? "" : "@" + humane(in.bytes));
    last = name;
  }
  return text;
}

std::string on_hgx(Func func, int nodes, const std::string& algorithms = "") {
  return choices({func, 0, 8 * nodes, nodes, 16, &nccl_node("hgx-h100-400g", 8), {algorithms, ""}});
}
std::string on_single_gpus(Func func) {
  return choices({func, 0, 8, 8, 16, &nccl_node("one-gpu-400g", 1)});
}

TEST(NcclTuner, ChoosesForAllReduceOnHgx) {
  const auto all_reduce = [](int nodes) { return on_hgx(Func::all_reduce, nodes); };
  EXPECT_EQ(all_reduce(2), "tree/LL tree/LL128@256K nvlstree/Simple@2M");
  EXPECT_EQ(all_reduce(4), "tree/LL tree/LL128@256K nvlstree/Simple@8M ring/Simple@1G");
  EXPECT_EQ(all_reduce(8), "tree/LL tree/LL128@256K nvlstree/Simple@16M ring/Simple@4G");
  EXPECT_EQ(all_reduce(16), "tree/LL tree/LL128@256K nvlstree/Simple@16M ring/Simple@8G");
  EXPECT_EQ(all_reduce(32), "tree/LL tree/LL128@256K nvlstree/Simple@32M");
  EXPECT_EQ(all_reduce(64), "tree/LL tree/LL128@256K nvlstree/Simple@32M");
}

TEST(NcclTuner, ChoosesForAllReduceOnHgxWithoutNvls) {
  EXPECT_EQ(on_hgx(Func::all_reduce, 2, "^NVLSTree"),
            "tree/LL tree/LL128@256K ring/LL128@16M ring/Simple@128M");
  EXPECT_EQ(on_hgx(Func::all_reduce, 16, "^NVLSTree"),
            "tree/LL tree/LL128@256K tree/Simple@128M ring/LL128@256M ring/Simple@1G");
}

TEST(NcclTuner, ChoosesForAllGatherAndReduceScatterOnHgx) {
  for (const Func func : {Func::all_gather, Func::reduce_scatter}) {
    EXPECT_EQ(on_hgx(func, 2), "ring/LL ring/LL128@1M ring/Simple@64M");
    EXPECT_EQ(on_hgx(func, 4), "ring/LL ring/LL128@1M ring/Simple@128M");
    EXPECT_EQ(on_hgx(func, 8), "ring/LL ring/LL128@2M ring/Simple@256M");
    EXPECT_EQ(on_hgx(func, 16), "ring/LL ring/LL128@4M ring/Simple@512M");
    EXPECT_EQ(on_hgx(func, 32), "ring/LL ring/LL128@8M ring/Simple@1G");
    EXPECT_EQ(on_hgx(func, 64), "ring/LL ring/LL128@16M ring/Simple@2G");
  }
}

TEST(NcclTuner, CorrectsATreesBandwidthBelow512MiB) {
  const auto tree_us = [](std::uint64_t bytes) {
    return nccl_time_us({Func::all_reduce, bytes, 16, 16, 4, &nccl_node("one-gpu", 1)},
                        NcclAlgorithm::tree, Protocol::simple);
  };
  // Twice the bytes take less than twice the time: the full bandwidth instead of nine tenths of it.
  EXPECT_NEAR(tree_us(1 << 29) / tree_us(1 << 28), 2 * 0.9, 0.01);
  EXPECT_NEAR(tree_us(1 << 30) / tree_us(1 << 29), 2, 0.01);
}

TEST(NcclTuner, CountsTheHopsOfATreeInsideTheSmallestShareOfANode) {
  const auto tree_us = [](int ranks) {
    return nccl_time_us({Func::all_reduce, 64, ranks, 4, 4, &nccl_node("hgx-h100-400g", 8)},
                        NcclAlgorithm::tree, Protocol::ll);
  };
  EXPECT_EQ(tree_us(4 * 6 + 3), tree_us(4 * 6));
  EXPECT_GT(tree_us(4 * 7), tree_us(4 * 6));
}

TEST(NcclTuner, ChoosesOnNodesOfOneGpu) {
  EXPECT_EQ(on_single_gpus(Func::all_reduce),
            "tree/LL tree/LL128@128K ring/LL128@2M ring/Simple@64M");
  EXPECT_EQ(on_single_gpus(Func::all_gather),
            "ring/LL pat/Simple@64K ring/LL128@4M ring/Simple@32M");
  EXPECT_EQ(on_single_gpus(Func::broadcast), "ring/LL ring/LL128@512K ring/Simple@4M");
}

// The choices on `nodes` nodes of a template, with `gpus` ranks on each.
std::string on(const char* node, Func func, int nodes, int channels, int gpus = 8) {
  return choices({func, 0, gpus * nodes, nodes, channels, &nccl_node(node, gpus, nodes)});
}

TEST(NcclTuner, BroadcastsOverSeveralNicsWaitForEveryHop) {
  EXPECT_EQ(on("hgx-h100-400g", Func::broadcast, 16, 16), "ring/LL ring/LL128@4M ring/Simple@2G");
}

TEST(NcclTuner, ChoosesNvlsInsideANodeFromAboutTwoMiB) {
  const std::string text = on("hgx-h100-400g", Func::all_reduce, 1, 24);
  EXPECT_NE(text.find("nvls/Simple@2M"), std::string::npos) << text;
  EXPECT_EQ(on("dgx-a100", Func::all_reduce, 1, 24).find("nvls"), std::string::npos);
  EXPECT_EQ(on("hgx-h100-400g", Func::all_gather, 1, 24).find("nvls"), std::string::npos);
}

TEST(NcclTuner, HasNvlsOnNodesWithFourNicsAndWithSlowNics) {
  for (const char* node : {"hgx-h100-4nic", "hgx-h100-200g"})
    EXPECT_NE(on(node, Func::all_reduce, 4, 16).find("nvlstree"), std::string::npos) << node;
  for (const char* node : {"dgx-a100", "hgx-h100-1nic"})
    EXPECT_EQ(on(node, Func::all_reduce, 4, 16).find("nvlstree"), std::string::npos) << node;
}

// A data-parallel group of a job with tensor parallelism over whole nodes.
TEST(NcclTuner, PlaysRingsForLargeAllGathersOfOneGpuOnEveryNode) {
  const std::string text = on("hgx-h100-400g", Func::all_gather, 64, 4, 1);
  EXPECT_NE(text.find("pat/Simple"), std::string::npos) << text;
  EXPECT_NE(text.rfind("ring/Simple"), std::string::npos) << text;
  EXPECT_GT(text.rfind("ring/Simple"), text.rfind("pat/Simple")) << text;
}

TEST(NcclTuner, KnowsCpusOfAmd) {
  NcclNode amd = nccl_node("hgx-h100-400g", 8);
  amd.cpu = NcclCpu::amd;
  const auto time = [](const NcclNode& node, Protocol protocol) {
    return nccl_time_us({Func::all_gather, 1 << 20, 32, 4, 16, &node}, NcclAlgorithm::ring,
                        protocol);
  };
  const NcclNode& intel = nccl_node("hgx-h100-400g", 8);
  // 28 steps inside nodes take 2 us instead of NVLink's 1.9 us, and LL's bandwidth differs.
  EXPECT_NEAR(time(amd, Protocol::ll128) - time(intel, Protocol::ll128), 28 * 0.1, 1e-9);
  EXPECT_NE(time(amd, Protocol::ll), time(intel, Protocol::ll));
}

NcclTunerInput small(NcclOverrides overrides) {
  return {Func::all_reduce, 4096, 8, 8, 4, &nccl_node("one-gpu", 1), std::move(overrides)};
}

TEST(NcclTuner, FollowsOverrides) {
  const auto choose = [](const char* algorithms, const char* protocols) {
    const NcclChoice choice = nccl_choose(small({algorithms, protocols}));
    return std::string(name_of(choice.algorithm)) + '/' + std::string(name_of(choice.protocol));
  };
  EXPECT_EQ(choose("", ""), "tree/LL");
  EXPECT_EQ(choose("Ring", ""), "ring/LL");
  EXPECT_EQ(choose("^tree", "Simple,LL128"), "ring/LL128");
  EXPECT_EQ(choose("ring;allreduce:tree", "simple"), "tree/Simple");
  EXPECT_EQ(choose("tree;allgather:ring", "^LL,LL128"), "tree/Simple");
  EXPECT_EQ(choose("allreduce:ring", "allreduce:^ll,ll128;allgather:ll"), "ring/Simple");
  EXPECT_EQ(choose("Broadcast:Ring", "ReduceScatter:Simple"), "tree/LL");  // of other functions
}

TEST(NcclTuner, RefusesOverridesThatAreNoneOrLeaveNothing) {
  EXPECT_THROW(nccl_choose(small({"rign", ""})), std::invalid_argument);
  EXPECT_THROW(nccl_choose(small({"", "LL256"})), std::invalid_argument);
  EXPECT_THROW(nccl_choose(small({"pat", ""})), std::invalid_argument);
  for (const char* text : {"allreduce:tree;ring", "alltoall:ring", "ring:tree:pat", ":", "^", ",",
                           "nvls_tree", "tree ring"})
    EXPECT_THROW(check_overrides({text, ""}), std::invalid_argument) << text;
}

TEST(NcclTuner, DropsChannelsThatWouldHaveTooLittleForTheirThreads) {
  const auto channels = [](std::uint64_t bytes, NcclAlgorithm algorithm, Protocol protocol) {
    return nccl_max_channels({Func::all_reduce, bytes, 16, 16, 16, &nccl_node("one-gpu-400g", 1)},
                             algorithm, protocol);
  };
  // Simple: 512 threads x 64 bytes per channel.
  EXPECT_EQ(channels(0, NcclAlgorithm::ring, Protocol::simple), 1);
  EXPECT_EQ(channels(3 * 32768, NcclAlgorithm::ring, Protocol::simple), 3);
  EXPECT_EQ(channels(4 * 32768 - 1, NcclAlgorithm::tree, Protocol::simple), 3);
  EXPECT_EQ(channels(1 << 30, NcclAlgorithm::ring, Protocol::simple), 16);
  EXPECT_EQ(channels(1, NcclAlgorithm::pat, Protocol::simple), 16);  // drops none
  // LL: 512 x 8 bytes, in a ring once per rank; LL128: 640 x 8 bytes.
  EXPECT_EQ(channels(16384, NcclAlgorithm::tree, Protocol::ll), 4);
  EXPECT_EQ(channels(4 * 16 * 4096, NcclAlgorithm::ring, Protocol::ll), 4);
  EXPECT_EQ(channels(5 * 5120, NcclAlgorithm::ring, Protocol::ll128), 5);
}

TEST(NcclTuner, LeavesTypesOfOneByteToRingsAndTrees) {
  Communicator comm;
  comm.channels = 0;
  for (int rank = 0; rank < 32; ++rank) comm.node_of.push_back(rank / 8);
  const auto played = [&](std::uint32_t element_bytes) {
    const Collective c{Func::all_reduce, 32, (std::uint64_t{64} << 20) / element_bytes,
                       element_bytes};
    return find_algorithm("nccl-2.30", c.func, "tuned")->make(c, comm)->played();
  };
  EXPECT_EQ(played(2), "nvlstree/Simple");
  EXPECT_EQ(played(8), "nvlstree/Simple");
  EXPECT_EQ(played(1), "ring/LL128");
  const Collective c{Func::all_reduce, 32, 1 << 20, 1};
  EXPECT_THROW(find_algorithm("nccl-2.30", c.func, "nvlstree")->make(c, comm),
               std::invalid_argument);
}

std::string played(const char* library, Collective c, int per_node) {
  Communicator comm;
  comm.channels = 0;
  comm.node = per_node == 1 ? "one-gpu-400g" : "hgx-h100-400g";
  comm.node_of = nccl_testing::nodes_of(c.size, per_node);
  return find_algorithm(library, c.func, "tuned")->make(c, comm)->played();
}

// ncclNvlsSupported() and the exclusions of updateCollCostTable() in NCCL's source.
TEST(NcclTuner, TheSwitchComputesSumsAndSomeExtremes) {
  const auto with = [](Reduction reduction, std::uint32_t element_bytes, Numbers numbers) {
    Collective c{Func::all_reduce, 32, (64 << 20) / element_bytes, element_bytes};
    c.reduction = reduction;
    c.numbers = numbers;
    return played("nccl-2.28", c, 8);
  };
  for (const std::uint32_t bytes : {2, 4, 8})
    EXPECT_EQ(with(Reduction::sum, bytes, Numbers::floats), "nvlstree/Simple") << bytes;
  for (const Reduction extreme : {Reduction::min, Reduction::max}) {
    EXPECT_EQ(with(extreme, 2, Numbers::floats), "nvlstree/Simple");
    EXPECT_EQ(with(extreme, 4, Numbers::floats), "ring/LL128");
    EXPECT_EQ(with(extreme, 4, Numbers::integers), "nvlstree/Simple");
    EXPECT_EQ(with(extreme, 8, Numbers::floats), "ring/LL128");
  }
  for (const Reduction other : {Reduction::prod, Reduction::avg, Reduction::pre_mul_sum})
    for (const Numbers numbers : {Numbers::floats, Numbers::integers})
      EXPECT_EQ(with(other, 4, numbers), "ring/LL128") << name_of(other);
  Collective average{Func::all_reduce, 32, 1 << 20, 4};
  average.reduction = Reduction::avg;
  Communicator comm;
  comm.channels = 0;
  comm.node_of = nccl_testing::nodes_of(32, 8);
  EXPECT_THROW(find_algorithm("nccl-2.30", average.func, "nvlstree")->make(average, comm),
               std::invalid_argument);
}

TEST(NcclTuner, AveragesAreScatteredWithoutPat) {
  for (const char* library : nccl_testing::kLibraries) {
    Collective c{Func::reduce_scatter, 8, (256 << 10) / 4 / 8, 4};
    EXPECT_EQ(played(library, c, 1), "pat/Simple");
    for (const Reduction scaled : {Reduction::avg, Reduction::pre_mul_sum}) {
      c.reduction = scaled;
      EXPECT_EQ(played(library, c, 1), "ring/LL");
      EXPECT_THROW(find_algorithm(library, c.func, "pat")->make(c, {}), std::invalid_argument);
    }
    c.func = Func::all_gather;
    EXPECT_EQ(played(library, c, 1), "pat/Simple");  // it reduces nothing
  }
}

TEST(NcclTuner, KeepsSumsOfEightBitFloatsOutOfLongRings) {
  const auto with = [](Func func, int size, Numbers numbers) {
    Collective c{func, size, 256 << 20, 1};
    c.numbers = numbers;
    return played("nccl-2.30", c, 8);
  };
  EXPECT_EQ(with(Func::all_reduce, 32, Numbers::integers).substr(0, 4), "ring");
  EXPECT_EQ(with(Func::all_reduce, 32, Numbers::floats).substr(0, 4), "tree");
  EXPECT_EQ(with(Func::all_reduce, 8, Numbers::floats).substr(0, 4), "ring");
  EXPECT_EQ(with(Func::all_gather, 32, Numbers::floats).substr(0, 4), "ring");
}

// The choices in a log of 64 nodes of 8 H100 (NVIDIA/nccl issue 1752).
TEST(NcclTuner, ChoosesAsA64NodeClustersLogSays) {
  for (const char* library : nccl_testing::kLibraries) {
    EXPECT_EQ(played(library, {Func::all_reduce, 512, (16 << 20) / 4, 4}, 8), "tree/LL128");
    EXPECT_EQ(played(library, {Func::all_reduce, 512, (32 << 20) / 4, 4}, 8), "nvlstree/Simple");
  }
}

TEST(NcclTuner, FillsInWhatACommunicatorLeavesOpen) {
  Communicator open;
  open.channels = 16;
  const auto plan = [&](std::uint64_t count) {
    return nccl_plan(NcclVersion::v2_30, NcclAlgorithm::ring, {Func::all_reduce, 8, count, 4, 0},
                     open);
  };
  EXPECT_EQ(plan(256).task.protocol, Protocol::ll);
  EXPECT_EQ(plan(256).task.max_channels, 1);
  EXPECT_EQ(plan(1 << 20).task.protocol, Protocol::ll128);
  EXPECT_EQ(plan(1 << 28).task.protocol, Protocol::simple);
  EXPECT_EQ(plan(1 << 28).task.max_channels, 16);
}

}  // namespace
}  // namespace ghostrank
