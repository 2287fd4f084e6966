// Whole jobs as several processes over libfabric on loopback: real data, the same ledger as on
// other fabrics, and jobs that are refused.
#include <chrono>
#include <functional>
#include <sys/resource.h>

#include <gtest/gtest.h>

#include "profiles/algorithms/algorithms.h"
#include "profiles/error.h"
#include "profiles/job/nic_rates.h"
#include "profiles/load/load.h"
#include "tests/algorithms/support.h"
#include "tests/emulator/plugins.h"
#include "tests/emulator/processes/processes.h"
#include "tests/emulator/support.h"

namespace ghostrank {
namespace {

using testing::ledger_text;
using testing::SmallJob;

SmallJob every_collective(FabricKind kind, DataType type) {
  SmallJob job(4, 2, kind);
  job.spec.run.verify = true;
  job.spec.run.iterations = 2;
  job.spec.run.warmup = 1;
  job.compute(100 * kPicosPerMicro)
      .collective(Func::all_reduce, 100'003, type)
      .collective(Func::reduce_scatter, 1001, type)
      .collective(Func::all_gather, 777, type)
      .collective(Func::broadcast, 500'000, type, 3)
      .collective(Func::reduce, 4096, type, 5)
      .collective(Func::all_to_all, 333, type)
      .collective(Func::barrier, 0, type);
  return job;
}

struct Case {
  const char* provider;
  int processes;
  int shards;
};

class OverLibfabric : public ::testing::TestWithParam<Case> {};

TEST_P(OverLibfabric, RealDataIsReducedRightAndTheLedgerIsTheSameEverywhere) {
  const Case& c = GetParam();
  for (DataType type :
       {DataType::int32, DataType::float32, DataType::bfloat16, DataType::int64, DataType::uint8}) {
    const std::string expected =
        ledger_text(every_collective(FabricKind::virtual_time, type).run());
    EXPECT_EQ(ledger_text(every_collective(FabricKind::memory, type).run()), expected);
    SmallJob job = every_collective(FabricKind::ofi, type);
    job.spec.fabric.provider = c.provider;
    job.spec.run.shards = c.shards;
    const auto outcomes = testing::run_processes(
        c.processes,
        [&](const World& world) {
          const auto control = Control::meet(world);
          const Result result = job.run(*control);
          EXPECT_EQ(result.interrupted, "");
          if (world.rank == 0) {
            EXPECT_EQ(result.iterations.size(), 2u);
            EXPECT_EQ(result.verify->wrong_elements, 0u);
            EXPECT_EQ(result.verify->checked_elements,
                      2u * (8u * (100'003u + 1001u + 8u * 777u + 500'000u + 8u * 333u) + 4096u));
            EXPECT_EQ(result.hosts.size(), static_cast<std::size_t>(c.processes));
          }
          control->close();
          return ledger_text(result);
        },
        std::chrono::seconds(60));
    testing::expect_all_ok(outcomes);
    EXPECT_EQ(outcomes[0].said, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Loopback, OverLibfabric,
                         ::testing::Values(Case{"net", 2, 1}, Case{"net", 4, 1}, Case{"net", 2, 2},
                                           Case{"tcp;ofi_rxm", 2, 1}, Case{"sockets", 2, 1}));

// Plays two processes: every result is right, and `elements` elements are compared.
void expect_reduced_right(const SmallJob& job, std::uint64_t elements) {
  const auto outcomes = testing::run_processes(2, [&](const World& world) {
    const auto control = Control::meet(world);
    const Result result = job.run(*control);
    if (world.rank == 0) {
      EXPECT_EQ(result.verify->checked_elements, elements);
      EXPECT_EQ(result.verify->wrong_elements, 0u);
    }
    control->close();
    return result.interrupted;
  });
  testing::expect_all_ok(outcomes);
}

// Two processes of two ranks each; a third has the servers.
TEST(OverLibfabric, AgentsSumRealDataWithTheirHelpersOnAHostOfTheirOwn) {
  for (const char* scheme : {"at-server", "in-packets"}) {
    for (const FlowKind flows : {FlowKind::process, FlowKind::nic, FlowKind::connection}) {
      SCOPED_TRACE(scheme);
      SmallJob job(2, 2, FabricKind::ofi);
      job.spec.collectives.own = testing::load_plugins({GHOSTRANK_AGENTS_PLUGIN});
      job.spec.collectives.algorithm(Func::all_reduce) = std::string("test/") + scheme;
      job.spec.cluster.servers.count = 1;
      job.spec.cluster.nic.rate_bps = 1e9;
      job.spec.fabric.flows = flows;
      job.spec.fabric.packets.loss = 0.05;
      job.spec.run.verify = true;
      job.spec.run.warmup = 1;
      job.spec.run.iterations = 3;
      job.collective(Func::all_reduce, 5003).compute(kPicosPerMicro).collective(Func::broadcast, 9);
      const auto outcomes = testing::run_processes(3, [&](const World& world) {
        const auto control = Control::meet(world);
        const Result result = job.run(*control);
        EXPECT_EQ(result.interrupted, "");
        EXPECT_EQ(result.iterations.size(), 3u * (world.rank == 0));
        if (world.rank == 0) {
          EXPECT_EQ(result.verify->checked_elements, 3u * 4u * 5012u);
          EXPECT_EQ(result.verify->wrong_elements, 0u);
        }
        control->close();
        return ledger_text(result);
      });
      testing::expect_all_ok(outcomes);
      if (std::string(scheme) == "in-packets") continue;  // retransmits late packets
      job.spec.fabric.kind = FabricKind::virtual_time;
      job.spec.dilation = 0;
      EXPECT_EQ(outcomes[0].said, ledger_text(job.run()));
    }
  }
}

TEST(OverLibfabric, LinksOfTheClusterAreNotModelled) {
  SmallJob job(4, 1, FabricKind::ofi);
  job.spec.cluster.topology.kind = TopologySpec::Kind::leaf_spine;
  job.spec.cluster.topology.oversubscription = 100;
  job.collective(Func::all_reduce, 1000);
  const auto outcomes = testing::run_processes(2, [&](const World& world) {
    const auto control = Control::meet(world);
    const Result result = job.run(*control);
    control->close();
    return std::string(result.network && !result.network->tiers.empty() ? "links" : "no links");
  });
  testing::expect_all_ok(outcomes);
  EXPECT_EQ(outcomes[0].said, "no links");
}

TEST(OverLibfabric, CreditsAndSlicesTravelToo) {
  SmallJob job(2, 2, FabricKind::ofi);
  job.spec.run.verify = true;
  job.spec.collectives.slice_bytes = 64 << 10;
  job.spec.collectives.credits = 4;
  job.collective(Func::all_reduce, 2'000'000).collective(Func::all_to_all, 50'000);
  expect_reduced_right(job, 4u * (2'000'000u + 4u * 50'000u));
}

// Nobody waits for the credits of a call's last messages: their receiver may have ended.
TEST(OverLibfabric, CreditsLeaveTheirSenderAlsoWhereTheirReceiverHasEnded) {
  for (const char* provider : {"net", "sockets"}) {
    SCOPED_TRACE(provider);
    SmallJob job(2, 1, FabricKind::ofi);
    job.spec.fabric.provider = provider;
    job.spec.fabric.flows = FlowKind::connection;
    job.spec.collectives.library = "nccl-2.30";
    job.spec.run.stall_timeout_s = 10;
    job.spec.run.warmup = 1;
    job.spec.run.iterations = 3;
    job.compute(100 * kPicosPerMicro).collective(Func::all_reduce, 3'000'000);
    const auto outcomes = testing::run_processes(2, [&](const World& world) {
      const auto control = Control::meet(world);
      const Result result = job.run(*control);
      control->close();
      return result.interrupted;
    });
    testing::expect_all_ok(outcomes);
    EXPECT_EQ(outcomes[0].said, "");
  }
}

// Channels share NICs whose turns are often late; waiting messages keep their places.
TEST(OverLibfabric, MessagesThatWaitForTheirTurnAreReducedRight) {
  SmallJob job(4, 2, FabricKind::ofi);
  job.spec.cluster.nic.rate_bps = 10'000'000'000;
  job.spec.dilation = 10;
  job.spec.run.verify = true;
  job.spec.run.iterations = 500;
  job.spec.collectives.library = "nccl-2.28";
  job.compute(100 * kPicosPerMicro).collective(Func::all_reduce, 30'000, DataType::int32);
  expect_reduced_right(job, 500u * 8u * 30'000u);
}

// As in virtual time, a root that has posted its sends goes on while slices wait for their turn at
// a slow NIC. The last slice begins a second after the first.
TEST(OverLibfabric, ASenderDoesNotWaitForItsTurnAtTheNic) {
  const auto outcomes = testing::run_processes(2, [](const World& world) {
    SmallJob job(2, 1, FabricKind::ofi);
    job.spec.dilation = 1;
    job.spec.cluster.nic.rate_bps = 1'048'576;
    job.spec.collectives.slice_bytes = 64 << 10;
    job.collective(Func::broadcast, 3 * (16 << 10)).compute(kPicosPerMilli);
    const auto control = Control::meet(world);
    const Result result = job.run(*control);
    if (world.rank == 0) {
      EXPECT_NEAR(result.iterations[0].seconds, 1.5, 0.3);
      EXPECT_LT(result.fidelity.lateness_us_max, 0.5e6);
    }
    control->close();
    return result.interrupted;
  });
  testing::expect_all_ok(outcomes);
}

// Of 512 KiB half take 0.25 s, the other half twice as long.
std::shared_ptr<const NicRates> halved(VectorBy<Nic, std::uint32_t> curve_of) {
  const RateCurve curve({{0, 1e12 / (1 << 20)}, {kPicosPerSecond / 4, 2e12 / (1 << 20)}});
  return std::make_shared<const NicRates>(std::vector{curve}, std::move(curve_of));
}

TEST(OverLibfabric, MessagesLeaveAtRatesThatChange) {
  const auto outcomes = testing::run_processes(2, [](const World& world) {
    SmallJob job(2, 1, FabricKind::ofi);
    job.spec.dilation = 1;
    job.spec.cluster.nic.rate_bps = 8 << 20;
    job.spec.cluster.nic_rates = halved({0, 0});
    job.spec.collectives.slice_bytes = 16 << 10;
    job.collective(Func::broadcast, 128 << 10);
    const auto control = Control::meet(world);
    const Result result = job.run(*control);
    if (world.rank == 0) {
      EXPECT_NEAR(result.iterations[0].seconds, 0.75, 0.1);
      EXPECT_LT(result.fidelity.rate_error, 0.05);
    }
    control->close();
    return result.interrupted;
  });
  testing::expect_all_ok(outcomes);
}

TEST(OverLibfabric, AMessageIsInNoSoonerThanASlowSenderHasSentIt) {
  const auto outcomes = testing::run_processes(2, [](const World& world) {
    SmallJob job(2, 1, FabricKind::ofi);
    job.spec.dilation = 1;
    job.spec.cluster.nic.rate_bps = 80 << 20;
    job.spec.cluster.nic_rates = halved({0, NicRates::kConstant});
    job.collective(Func::broadcast, 128 << 10);
    const auto control = Control::meet(world);
    const Result result = job.run(*control);
    if (world.rank == 0) {
      EXPECT_NEAR(result.iterations[0].seconds, 0.75, 0.1);
    }
    control->close();
    return result.interrupted;
  });
  testing::expect_all_ok(outcomes);
}

// NCCL's channels of the second NIC, which is faster than the GPU's own.
TEST(OverLibfabric, MessagesByANicThatNcclChoosesStayInOrder) {
  const auto outcomes = testing::run_processes(2, [](const World& world) {
    SmallJob job(2, 1, FabricKind::ofi);
    job.spec.dilation = 1;
    job.spec.cluster.nics_per_node = 2;
    job.spec.cluster.nic.rate_bps = 1e9;
    const std::vector slow{RateCurve({{0, 80'000}})};  // 0.1 Gb/s
    job.spec.cluster.nic_rates = std::make_shared<const NicRates>(
        slow, VectorBy<Nic, std::uint32_t>{0, NicRates::kConstant});
    job.spec.collectives.library = "nccl-2.28";
    job.spec.collectives.max_channels = 2;
    job.collective(Func::broadcast, 400'000);
    const auto control = Control::meet(world);
    EXPECT_EQ(job.run(*control).interrupted, "");
    control->close();
    return "";
  });
  testing::expect_all_ok(outcomes);
}

// A million messages that nothing paces: few of them may be in memory, even at the start of the
// segment, when nothing may leave yet.
TEST(OverLibfabric, ASenderWithoutARateHasFewMessagesUnderWay) {
#ifdef GHOSTRANK_SANITIZED
  GTEST_SKIP() << "resident memory is the sanitizer's";
#endif
  const auto outcomes = testing::run_processes(2, [](const World& world) {
    SmallJob job(2, 1, FabricKind::ofi);
    job.spec.cluster.nic = {0, 0};
    job.spec.collectives.slice_bytes = 64;
    job.spec.fabric.frame_bytes = 64 << 10;
    job.collective(Func::broadcast, 1'000'000 * 16);
    const auto most_resident = [] {
      rusage usage{};
      getrusage(RUSAGE_SELF, &usage);
      return usage.ru_maxrss;
    };
    const long before = most_resident();
    const auto control = Control::meet(world);
    const Result result = job.run(*control);
    if (world.rank == 0) {
      EXPECT_EQ(result.messages_per_iteration, 1'000'000);
    }
    EXPECT_LT(most_resident() - before, 64 << 10) << "KiB";
    control->close();
    return result.interrupted;
  });
  testing::expect_all_ok(outcomes);
}

TEST(OverLibfabric, ProcessesAgreeOnHowLongToMeasure) {
  const auto outcomes = testing::run_processes(2, [](const World& world) {
    const auto control = Control::meet(world);
    SmallJob job(2, 1, FabricKind::ofi);
    job.spec.dilation = 20;
    job.spec.run.warmup = 1;
    job.spec.run.iterations = 2;
    job.spec.run.min_seconds = 0.5;
    job.compute(kPicosPerMilli).collective(Func::all_reduce, 1000);
    const Result result = job.run(*control);
    EXPECT_EQ(result.interrupted, "");
    if (world.rank == 0) {
      EXPECT_EQ(std::ssize(result.iterations), result.iterations_asked);
    }
    control->close();
    return std::to_string(result.iterations_asked);
  });
  testing::expect_all_ok(outcomes);
  EXPECT_EQ(outcomes[0].said, outcomes[1].said);
  EXPECT_GT(std::stoi(outcomes[0].said), 2);
}

TEST(OverLibfabric, ProcessesAndTheirShardsStopAfterTheSameIterationOfAnOpenEnd) {
  for (const RunEnd& end : {RunEnd{.duration = 0.6}, RunEnd{.ci95 = 0.05, .max_seconds = 3}}) {
    const auto outcomes = testing::run_processes(2, [&](const World& world) {
      const auto control = Control::meet(world);
      SmallJob job(4, 1, FabricKind::ofi);
      job.spec.dilation = 20;
      job.spec.run.shards = 2;
      job.spec.run.warmup = 1;
      job.spec.run.iterations = 3;
      job.spec.run.jitter = 0.3;
      job.spec.run.end = end;
      job.compute(kPicosPerMilli).collective(Func::all_reduce, 1000);
      const Result result = job.run(*control);
      if (world.rank == 0) {
        EXPECT_GE(result.iterations.size(), 3u);
        EXPECT_NE(result.open_end->by, EndedBy::nothing);
        EXPECT_EQ(result.open_end->iterations, result.iterations.size());
        // Every rank has played as many: what each sent divides by them.
        SmallJob given = job;
        given.spec.fabric.kind = FabricKind::virtual_time;
        given.spec.run.end = {};
        EXPECT_EQ(testing::ledger_text(result), testing::ledger_text(given.run()));
      }
      control->close();
      return result.interrupted;
    });
    testing::expect_all_ok(outcomes);
    for (const auto& outcome : outcomes) EXPECT_EQ(outcome.said, "");
  }
}

SmallJob small_job() {
  SmallJob job(2, 1, FabricKind::ofi);
  return job.collective(Func::all_reduce, 1000);
}

// Plays small_job() as two processes after `change`, which knows the process. Each says the error
// that it gets, or "ran".
std::vector<testing::Outcome> changed_by_process(
    const std::function<void(LoadedJob& job, int process)>& change) {
  return testing::run_processes(2, [&](const World& world) {
    const auto control = Control::meet(world);
    const SmallJob small = small_job();
    LoadedJob job;
    job.spec = small.spec;
    change(job, world.rank);
    Observer nobody;
    try {
      run_job(job, small.workload, *control, {}, nobody);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("ran");
  });
}

TEST(OverLibfabric, ProcessesWithDifferentJobsAreRefused) {
  const auto outcomes = changed_by_process([](LoadedJob& job, int process) {
    job.config_json = process == 0 ? "{\"a\":1}" : "{\"a\":2}";
  });
  for (const auto& o : outcomes)
    EXPECT_NE(o.said.find("plays another job than host 0: its job file or flags"),
              std::string::npos)
        << o.said;
}

TEST(OverLibfabric, ProcessesWithDifferentJobsSayWhichKeysDiffer) {
  const auto outcomes = changed_by_process([](LoadedJob& job, int process) {
    job.config_json = std::to_string(process);
    job.entries = {{"run.seed", "1", "default"},
                   {"run.iterations", process == 0 ? "10" : "20", "-s"}};
  });
  for (const auto& o : outcomes)
    EXPECT_NE(o.said.find("plays another job than host 0: run.iterations is 20, there 10; start"),
              std::string::npos)
        << o.said;
}

TEST(OverLibfabric, ProcessesNameTheFileWhoseTextDiffers) {
  const auto outcomes = changed_by_process([](LoadedJob& job, int process) {
    job.config_json = R"({"cluster": {"nic": {"rates": "seconds,rate\n0,)" +
                      std::to_string(1 + process) + R"(Gbps\n"}}})";
    job.entries = {{"run.seed", "1", "default"}, {"cluster.nic.rates", "rates.csv", "-s"}};
  });
  for (const auto& o : outcomes)
    EXPECT_NE(o.said.find("host 0: cluster.nic.rates is rates.csv, whose text is another one "
                          "there; start"),
              std::string::npos)
        << o.said;
}

TEST(OverLibfabric, ProcessesNameNoFileOfOneTextInTwoPlaces) {
  const auto outcomes = changed_by_process([](LoadedJob& job, int process) {
    job.config_json = R"({"run": {"seed": )" + std::to_string(process) + R"(}, "model": "text"})";
    job.entries = {{"model", "/home/user" + std::to_string(process) + "/model.yaml", "FILE"},
                   {"run.seed", std::to_string(process), "-s"}};
  });
  for (const auto& o : outcomes)
    EXPECT_NE(o.said.find("host 0: run.seed is 1, there 0; start"), std::string::npos) << o.said;
}

TEST(OverLibfabric, ProcessesKeepTheSameProgramAndTraceWhereTheyLike) {
  const auto outcomes = changed_by_process([](LoadedJob& job, int process) {
    const std::string path = "/home/user" + std::to_string(process) + "/step.yaml";
    job.config_json = R"({"program": ")" + path + R"(", "trace": [")" + path + R"("], "a": 1})";
    job.entries = {{"program", path, "FILE"}, {"trace", path, "FILE"}};
    job.spec.program = std::make_shared<const Workload>(small_job().workload);
  });
  for (const auto& o : outcomes) EXPECT_EQ(o.said, "ran");
}

TEST(OverLibfabric, ALongSettingIsShownFromWhereItDiffers) {
  const std::string same(100, 'x');
  const auto outcomes = changed_by_process([&](LoadedJob& job, int process) {
    job.config_json = std::to_string(process);
    job.entries = {{"model", same + std::to_string(process), "FILE"}};
  });
  for (const auto& o : outcomes)
    EXPECT_NE(
        o.said.find("model is ..." + same.substr(80) + "1, there ..." + same.substr(80) + "0;"),
        std::string::npos)
        << o.said;
}

// An all-reduce, read from a file, whose threadblocks wait for each other.
SmallJob with_file(const std::string& xml) {
  const testing::TemporaryFile file("algo.xml", xml);
  Algorithms algorithms;
  algorithms.load_file("algo.xml", file.folder());
  SmallJob job(2, 2, FabricKind::ofi);
  job.spec.collectives.algorithm(Func::all_reduce) = "algo.xml";
  job.spec.collectives.own = std::make_shared<const Algorithms>(std::move(algorithms));
  job.spec.run.verify = true;
  return job.collective(Func::all_reduce, 50'001);
}

TEST(OverLibfabric, AnMscclFileReducesRealDataRight) {
  expect_reduced_right(with_file(testing::all_pairs_xml(4, true)), 4u * 50'001u);
}

TEST(OverLibfabric, ProcessesWhoseAlgorithmFilesDifferAreRefused) {
  const auto outcomes = testing::run_processes(2, [](const World& world) {
    const auto control = Control::meet(world);
    const SmallJob job = with_file(testing::fused_ring_xml(4, 1 + world.rank));
    try {
      job.run(*control);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("ran");
  });
  for (const auto& o : outcomes)
    EXPECT_NE(o.said.find("plays another job than host 0: its plugins, algorithm"),
              std::string::npos)
        << o.said;
}

TEST(OverLibfabric, ProcessesWhoseProgramsDifferAreRefused) {
  const auto outcomes = changed_by_process([](LoadedJob& job, int process) {
    Workload program = small_job().workload;
    program.flops_per_iteration = process;
    job.spec.program = std::make_shared<const Workload>(std::move(program));
  });
  for (const auto& o : outcomes)
    EXPECT_NE(o.said.find("programs or traces differ"), std::string::npos) << o.said;
}

TEST(OverLibfabric, AProviderThatDoesNotExistIsNamedWithTheOnesThatDo) {
  const auto outcomes = testing::run_processes(2, [](const World& world) {
    const auto control = Control::meet(world);
    SmallJob job = small_job();
    job.spec.fabric.provider = "infinitesimal";
    try {
      job.run(*control);
    } catch (const Error& e) {
      EXPECT_EQ(e.exit_code(), 3);
      return std::string(e.what());
    }
    return std::string("ran");
  });
  EXPECT_NE(outcomes[0].said.find("infinitesimal"), std::string::npos) << outcomes[0].said;
  const std::size_t offered = outcomes[0].said.find("this machine offers ");
  ASSERT_NE(offered, std::string::npos) << outcomes[0].said;
  EXPECT_NE(outcomes[0].said.find(" net,", offered), std::string::npos) << outcomes[0].said;
}

TEST(OverLibfabric, VirtualTimeAndMemoryRefuseSeveralProcesses) {
  const auto outcomes = testing::run_processes(2, [](const World& world) {
    const auto control = Control::meet(world);
    SmallJob job(2, 1, FabricKind::virtual_time);
    job.collective(Func::barrier, 0);
    try {
      job.run(*control);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("ran");
  });
  EXPECT_NE(outcomes[0].said.find("run in one process, here are 2"), std::string::npos)
      << outcomes[0].said;
}

}  // namespace
}  // namespace ghostrank
