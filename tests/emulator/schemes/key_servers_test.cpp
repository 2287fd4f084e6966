// Schemes whose servers hold keys, in the engine: times against closed forms, costs charged to
// cores and memory, what servers report.
#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include <gtest/gtest.h>

#include "collectives/compress/byteps.h"
#include "collectives/schemes/keyed/keys.h"
#include "collectives/schemes/keyed/piece_compression.h"
#include "collectives/server_placement.h"
#include "profiles/planners/compression/piece_sizes.h"
#include "tests/emulator/schemes/server_job.h"
#include "tests/emulator/support.h"
#include "tests/method_named.h"

namespace ghostrank {
namespace {

using testing::kServerJobRate, testing::seconds_of, testing::server_job, testing::SmallJob;

const ServerPlacement& placement_named(std::string_view name) {
  for (const ServerPlacement& row : server_placements())
    if (row.name == name) return row;
  throw std::invalid_argument(std::string(name));
}

// BPS-3. All workers push in one order, so the n pushes of a partition of p bytes come to its
// server together. The theorem has no such partitions. What they add to it:
//
//   fill = 2 n p / B                      the first partition's pushes and the last one's results
//        + credit / (B s) if there are    pulls wait behind the pushes that a worker has under way,
//          CPU machines                   so those machines begin to send that much later; pushes
//                                         are the share s of what a worker sends
//
// At n p = 0.5 % of M, with a credit of two partitions for every server, that is 1 to 3 % of the
// time.
TEST(BytePs, TakesTheTimeOfItsTheorem) {
  constexpr std::uint64_t kPartition = 64 << 10;
  const std::vector<std::pair<int, std::vector<int>>> kCases{{4, {0, 1, 2, 3, 4}},
                                                             {8, {0, 1, 2, 3, 4, 5, 6, 7, 8}},
                                                             {16, {0, 4, 8, 12, 16}},
                                                             {32, {0, 8, 32}}};
  for (const int parts : {200, 2000})
    for (const auto& [n, servers] : kCases) {
      if (parts == 2000 && n > 16) continue;  // for the time that it takes
      const std::uint64_t bytes = static_cast<std::uint64_t>(parts * n) * kPartition;
      const double unit = static_cast<double>(bytes) * 8 / kServerJobRate;  // M / B
      double alone = 0;
      for (const int k : servers) {
        SCOPED_TRACE(std::to_string(n) + " workers, " + std::to_string(k) +
                     " servers, M = " + std::to_string(parts) + " n p");
        SmallJob job = server_job("byteps", n, k, bytes);
        job.spec.cluster.servers.placement = &placement_named("mixed");
        AtServers& options = job.spec.collectives.at_servers;
        options.bound = true;
        options.partition_bytes = kPartition;
        options.credit_bytes = 2 * kPartition * static_cast<std::uint64_t>(n + k);
        const double took = seconds_of(job), best = best_time(n + k, n, n);
        const double pushes = (1 - best_split(n + k, n).back()) / best;
        const double fill = (2.0 * n + (k > 0 ? 2.0 * (n + k) / pushes : 0)) / (parts * n);
        if (k == 0) alone = took;
        EXPECT_NEAR(took / unit / (best + fill), 1, 0.01);
        if (parts < 2000) continue;
        EXPECT_NEAR(took / unit / best, 1, 0.01);
        EXPECT_NEAR(took / alone / (best / best_time(n, n, n)), 1, 0.01);
      }
    }
}

// One dedicated server is a worker's NIC for all: n M / B. It acknowledges a push, and lets a root
// pull, only when all have pushed a part of a big array: pushes and results take turns.
TEST(ParameterServer, TakesTheTimeOfItsOnlyServerTwice) {
  constexpr std::uint64_t kBytes = 32 << 20;
  SmallJob job = server_job("parameter_server", 4, 1, kBytes);
  const double once = 4 * static_cast<double>(kBytes) * 8 / kServerJobRate;
  EXPECT_NEAR(seconds_of(job), 2 * once, 0.02 * once);
}

TEST(KeyServers, ChargeSumsToCoresAndToTheMemoryThatTheyShare) {
  constexpr std::uint64_t kBytes = 32 << 20;
  const auto with = [&](int cores, double add, double memory) {
    SmallJob job = server_job("byteps", 4, 1, kBytes);
    job.spec.collectives.at_servers.partition_bytes = 256 << 10;
    ServerSpec& s = job.spec.cluster.servers;
    s.cores = cores, s.add_GBps = add, s.memory_GBps = memory;
    return job;
  };
  const double pushed = 4.0 * kBytes;
  EXPECT_NEAR(seconds_of(with(1, 1, 0)), pushed / 1e9, 0.03 * pushed / 1e9);
  EXPECT_NEAR(seconds_of(with(4, 1, 0)), pushed / 4e9, 0.05 * pushed / 4e9);
  // A copy is two passes through memory, each of three sums three.
  const double passes = (2 + 3 * 3) * static_cast<double>(kBytes);
  EXPECT_NEAR(seconds_of(with(64, 100, 4)), passes / 4e9, 0.05 * passes / 4e9);
}

// Work that waits for one core does not keep the others from the memory that they share.
TEST(KeyServers, AddInAllCoresAtOnceWhereTheirMemoryIsFast) {
  for (const char* scheme : {"byteps", "phub", "omnireduce", "atp"}) {
    const auto with = [&](double memory) {
      SmallJob job = server_job(scheme, 4, 1, 8 << 20);
      job.spec.collectives.at_servers.partition_bytes = 256 << 10;
      job.spec.collectives.in_switch = {.timeout_ps = kPicosPerSecond, .memory_slots = 0};
      ServerSpec& s = job.spec.cluster.servers;
      s.cores = 4, s.add_GBps = 1, s.memory_GBps = memory;
      return seconds_of(job);
    };
    EXPECT_NEAR(with(1000) / with(0), 1, 0.02) << scheme;
  }
}

// Pieces of 64 KiB that are compressed to a bit for each float and a few bytes.
SmallJob compressed_job(FabricKind kind) {
  SmallJob job(4, 2, kind);
  job.spec.collectives.algorithm(Func::all_reduce) = "byteps";
  job.spec.cluster.servers.count = 2;
  AtServers& servers = job.spec.collectives.at_servers;
  servers.partition_bytes = 64 << 10;
  PieceCompression how{&byteps_form(method_named("onebit")), {}, Memory::nesterov, 1 << 16};
  how.time = [](std::uint64_t elements) {
    return CodecTime{static_cast<Picoseconds>(elements) * 100, 1000};
  };
  servers.compression = std::make_shared<const PieceCompression>(how);
  return job;
}

TEST(BytePs, SendsCompressedPiecesAndChecksThem) {
  for (const FabricKind kind : {FabricKind::virtual_time, FabricKind::memory}) {
    SmallJob job = compressed_job(kind);
    job.spec.run.verify = true;
    job.spec.run.warmup = 1;
    job.spec.run.iterations = 3;
    job.collective(Func::all_reduce, 40'000, DataType::float32, 0, 1)
        .collective(Func::all_reduce, 1000, DataType::float32, 0, 2)
        .collective(Func::all_reduce, 1001);
    const Result result = job.run();
    EXPECT_EQ(result.interrupted, "");
    EXPECT_EQ(result.verify->wrong_elements, 0U);
    EXPECT_EQ(result.verify->checked_elements, 3U * 8 * (40'000 + 1000 + 1001));
    if (kind == FabricKind::virtual_time) testing::expect_alike_with_shards(job, {2, 4});
  }
}

// Where a method scales by the L2 norm, payloads grow with about the root of a piece's length.
TEST(BytePs, SizesOfPiecesFollowFromTheLengthsNextToThem) {
  PieceCompression how;
  how.method = &method_named("dithering");
  how.options.l2 = true;
  how.options.quantum = 16;
  PieceSizes sizes(how, GradientLaw{}, 2, 1, 1);
  const auto shorter = static_cast<double>(sizes.of(65'536).piece),
             between = static_cast<double>(sizes.of(98'304).piece);
  EXPECT_NEAR(between, shorter * std::sqrt(1.5), 0.05 * between);
}

// Sums over more ranks exceed a threshold more often: those of normal gradients as a normal law
// with the sum of their variances says.
TEST(BytePs, SizesOfPiecesAreThoseOfTheSumsOfAllRanks) {
  PieceCompression how;
  how.method = &method_named("threshold");
  how.options.threshold = 0.004;
  const GradientLaw law{.kind = GradientLaw::Kind::gaussian};  // of mean magnitude 0.001
  constexpr std::uint64_t kElements = 1 << 16;
  const auto sent = [&](int gradients) {
    const double deviation = law.scale * std::sqrt(std::acos(-1.0) / 2 * gradients);
    return 8 * kElements * std::erfc(how.options.threshold / deviation / std::sqrt(2.0));
  };
  for (const int ranks : {1, 2, 8}) {
    PieceSizes sizes(how, law, 20, ranks, 1);
    EXPECT_NEAR(static_cast<double>(sizes.of(kElements).piece), sent(ranks), 0.02 * sent(ranks));
  }
  const auto sum = [&](int nodes) { return PieceSizes(how, law, nodes, 1, 1).of(kElements).sum; };
  EXPECT_GT(static_cast<double>(sum(32)), 1.5 * static_cast<double>(sum(8)));
}

// Pieces of all lengths are cut out of the same gradients, which are drawn once: two halves of a
// piece send what it sends.
TEST(BytePs, SizesOfPiecesOfAllLengthsComeFromOneDraw) {
  PieceCompression how;
  how.method = &method_named("threshold");
  how.options.threshold = 0.004;
  PieceSizes sizes(how, GradientLaw{}, 2, 4, 1);
  const std::uint64_t whole = sizes.of(1 << 20).piece;
  EXPECT_GT(whole, 100'000U);
  for (int parts = 2; parts <= 16; parts *= 2)
    EXPECT_NEAR(static_cast<double>(sizes.of((1 << 20) / parts).piece * parts),
                static_cast<double>(whole), 4 * parts);
}

// Dithering: real data travel as they are encoded, the same bytes in memory and in virtual time;
// without real data notes are as long as those are on average.
TEST(BytePs, SendsAsMuchAsTheGradientsDecide) {
  for (const bool natural : {false, true}) {
    const auto bytes = [&](FabricKind kind, bool verify) {
      SmallJob job = compressed_job(kind);
      PieceCompression how = *job.spec.collectives.at_servers.compression;
      how.method = &method_named("dithering");
      how.memory = natural ? Memory::nesterov : Memory::none;
      how.options.natural = natural;
      how.options.quantum = natural ? 5 : 16;
      const auto sizes = std::make_shared<PieceSizes>(how, job.spec.gradients.laws.front(), 4, 2,
                                                      job.spec.run.seed);
      how.expected = [sizes](std::uint64_t elements) { return sizes->of(elements); };
      job.spec.collectives.at_servers.compression = std::make_shared<PieceCompression>(how);
      job.spec.run.verify = verify;
      job.spec.run.iterations = natural ? 4 : 2;  // memories fill
      job.collective(Func::all_reduce, 65'536, DataType::float32, 0, 1);
      const Result result = job.run();
      EXPECT_EQ(result.interrupted, "");
      if (verify) {
        EXPECT_EQ(result.verify->wrong_elements, 0U);
      }
      std::pair<double, double> sum;
      for (const ServerReport& server : result.servers) {
        sum.first += server.rx_bytes;
        sum.second += server.tx_bytes;
      }
      return sum;
    };
    const auto real = bytes(FabricKind::virtual_time, true);
    EXPECT_EQ(bytes(FabricKind::memory, true), real);
    const auto expected = bytes(FabricKind::virtual_time, false);
    EXPECT_NEAR(expected.first, real.first, 0.03 * real.first);
    EXPECT_NEAR(expected.second, real.second, 0.03 * real.second);
  }
}

// Bytes of the payloads, and the time of what compresses: roots one after the other, a server once
// for each push and once for the sum.
TEST(BytePs, ChargesCompressionToRootsAndServers) {
  constexpr std::uint64_t kPieces = 32, kElements = 16'384;
  const auto with = [](Picoseconds compress, Picoseconds decompress, int cores) {
    SmallJob job = server_job("byteps", 4, 1, kPieces * kElements * 4);
    job.spec.cluster.servers.cores = cores;
    AtServers& servers = job.spec.collectives.at_servers;
    servers.partition_bytes = kElements * 4;
    PieceCompression how{&byteps_form(method_named("onebit")), {}, Memory::none, 0};
    how.time = [=](std::uint64_t) { return CodecTime{compress, decompress}; };
    servers.compression = std::make_shared<const PieceCompression>(how);
    return job.run();
  };
  const Result free = with(0, 0, 1);
  const double payload = static_cast<double>(kPieces * (kElements / 8 + 4));
  const double headers = 2 * 64 * kPieces;  // a push and a pull, or what answers them
  EXPECT_EQ(free.servers.at(0).rx_bytes, 4 * (payload + headers));
  EXPECT_EQ(free.servers.at(0).tx_bytes, 4 * (payload + headers));
  SmallJob plain = server_job("byteps", 4, 1, kPieces * kElements * 4);
  plain.spec.collectives.at_servers.partition_bytes = kElements * 4;
  const double share =
      (payload + headers) / (static_cast<double>(kPieces * kElements * 4) + headers);
  EXPECT_NEAR(free.iterations.at(0).seconds / seconds_of(plain), share, 0.05 * share);
  constexpr Picoseconds kMilli = 1'000'000'000;
  // A core decompresses four pushes of each piece and compresses their sum; many do so together.
  EXPECT_NEAR(with(kMilli, kMilli, 1).iterations.at(0).seconds, 5e-3 * kPieces,
              0.1 * 5e-3 * kPieces);
  EXPECT_NEAR(with(kMilli, kMilli, 64).iterations.at(0).seconds, 2e-3 * kPieces,
              0.2 * 2e-3 * kPieces);  // roots compress, and decompress results
}

// Each piece goes through BytePS's stages, one after the other, and all within the call. With a
// credit of one piece, a piece is pushed only when the one before has been.
TEST(BytePs, TracesThePiecesOfATensorStageByStage) {
  SmallJob job = compressed_job(FabricKind::virtual_time);
  job.spec.collectives.at_servers.credit_bytes = 1;
  job.spec.cluster.nic = job.spec.cluster.servers.nic = {kServerJobRate, kPicosPerMicro};
  job.compute(1000).collective(Func::all_reduce, 40'000, DataType::float32, 0, 1);
  RunOptions options;
  options.trace_ranks = {WorldRank(2), WorldRank(3)};  // the second node: a root and its mate
  const Result result = job.run(nullptr, options);
  std::map<std::uint32_t, std::vector<Span>> parts;
  Span call;
  for (const Span& span : result.spans) {
    if (span.kind == 1 && span.rank == WorldRank(2)) call = span;
    if (span.kind != 4) continue;
    EXPECT_EQ(span.rank, WorldRank(2));  // roots alone talk to servers
    parts[span.part].push_back(span);
  }
  ASSERT_EQ(parts.size(), 3U);  // of 64 KiB
  std::vector<std::pair<Picoseconds, Picoseconds>> pushes;
  for (auto& [part, spans] : parts) {
    std::ranges::sort(spans, {}, &Span::start);
    std::string stages;
    for (std::size_t i = 0; i < spans.size(); ++i) {
      stages += spans[i].label + " ";
      EXPECT_EQ(spans[i].call, "op");
      if (i > 0) {
        EXPECT_EQ(spans[i].start, spans[i - 1].start + spans[i - 1].duration);
      }
      if (spans[i].label == "PUSH")
        pushes.emplace_back(spans[i].start, spans[i].start + spans[i].duration);
    }
    EXPECT_EQ(stages, "COORDINATE_REDUCE REDUCE COMPRESS PUSH PULL DECOMPRESS BROADCAST ") << part;
    EXPECT_GE(spans.front().start, call.start);
    EXPECT_LE(spans.back().start + spans.back().duration, call.start + call.duration);
  }
  std::ranges::sort(pushes);
  for (std::size_t i = 1; i < pushes.size(); ++i) EXPECT_GE(pushes[i].first, pushes[i - 1].second);
}

TEST(KeyServers, ReportWhatTheyHeardDidAndHold) {
  constexpr std::uint64_t kBytes = 1 << 20;
  SmallJob job = server_job("byteps", 4, 2, kBytes);
  job.spec.collectives.at_servers.partition_bytes = 64 << 10;
  job.spec.run.iterations = 3;
  job.spec.cluster.servers.add_GBps = 1;
  const Result result = job.run();
  ASSERT_EQ(result.servers.size(), 2U);
  double rx = 0, tx = 0, busy = 0;
  std::uint64_t memory = 0;
  for (const ServerReport& s : result.servers) {
    rx += s.rx_bytes, tx += s.tx_bytes, busy += s.busy, memory += s.memory_bytes;
  }
  EXPECT_EQ(result.servers[0].name, "n4");
  const double notes = 4 * (2 * 64 * 16 + static_cast<double>(kBytes));  // each way
  EXPECT_EQ(rx, notes);
  EXPECT_EQ(tx, notes);
  EXPECT_EQ(memory, 2 * kBytes);
  double whole = 0;
  for (const IterationReport& i : result.iterations) whole += i.seconds;
  EXPECT_NEAR(busy, 3 * 4.0 * kBytes / 1e9 / (whole * 8), 1e-6);
}

TEST(KeyServers, SumRealDataAlikeForEveryNumberOfShards) {
  for (const char* scheme : {"parameter_server", "byteps", "phub", "phub_racks"}) {
    SCOPED_TRACE(scheme);
    SmallJob job(4, 2, FabricKind::virtual_time);
    job.spec.collectives.algorithm(Func::all_reduce) = scheme;
    job.spec.cluster.servers.count = 2;
    job.spec.collectives.at_servers.partition_bytes = job.spec.collectives.at_servers.chunk_bytes =
        4096;
    job.spec.collectives.at_servers.big_array = 5000;
    job.spec.run.verify = true;
    job.spec.run.iterations = 2;
    job.collective(Func::all_reduce, 20'000, DataType::float32, 0, 1)
        .collective(Func::all_reduce, 3, DataType::float32, 0, 2)
        .collective(Func::all_reduce, 1001);
    const Result result = job.run();
    EXPECT_EQ(result.interrupted, "");
    EXPECT_EQ(result.verify->checked_elements, 2U * 8 * (20'000 + 3 + 1001));
    EXPECT_EQ(result.verify->wrong_elements, 0U);
    testing::expect_alike_with_shards(job, {2, 4});
  }
}

// A server stops in the middle: with a time-out roots find out, and the run ends and names it; with
// elastic ones the other servers take its keys, and every sum is right.
TEST(BytePs, OtherServersTakeTheKeysOfADeadOne) {
  const auto with = [](Picoseconds at, int gpus, bool elastic, FabricKind kind) {
    SmallJob job(3, gpus, kind);
    job.spec.collectives.algorithm(Func::all_reduce) = "byteps";
    job.spec.cluster.nic = {1e9, kPicosPerMicro};
    job.spec.cluster.servers.nic = {1e9, kPicosPerMicro};
    job.spec.cluster.servers.count = 3;
    job.spec.cluster.servers.fails = 1;
    job.spec.cluster.servers.fails_at = at;
    AtServers& servers = job.spec.collectives.at_servers;
    servers.partition_bytes = 4096;
    servers.timeout_ps = 20'000 * kPicosPerMicro;
    servers.elastic = elastic;
    servers.schedules = gpus == 2;
    servers.credit_bytes = 16'384;
    job.spec.run.verify = true;
    job.spec.run.iterations = 4;
    job.compute(200 * kPicosPerMicro).collective(Func::all_reduce, 20'000, DataType::float32, 0, 1);
    job.collective(Func::all_reduce, 30'000);
    return job;
  };
  for (const int gpus : {1, 2}) {
    double whole = 0;
    for (const int at_us : {1'000'000, 0, 300, 900, 1500, 2222, 3333}) {
      SCOPED_TRACE(std::to_string(gpus) + " GPUs, after " + std::to_string(at_us) + " us");
      SmallJob job = with(at_us * kPicosPerMicro, gpus, true, FabricKind::virtual_time);
      const Result result = job.run();
      EXPECT_EQ(result.interrupted, "");
      ASSERT_EQ(result.iterations.size(), 4U);
      EXPECT_EQ(result.verify->wrong_elements, 0U);
      EXPECT_GT(result.verify->checked_elements, 0U);
      double took = 0;
      for (const IterationReport& i : result.iterations) took += i.seconds;
      if (whole == 0)
        whole = took;  // it does not die
      else
        EXPECT_GT(took, whole + 0.02);
      if (at_us == 900) testing::expect_alike_with_shards(job, {3});
    }
    const Result ended = with(900 * kPicosPerMicro, gpus, false, FabricKind::virtual_time).run();
    EXPECT_NE(ended.interrupted.find("server 1 does not answer"), std::string::npos)
        << ended.interrupted;
  }
  const Result in_memory = with(900 * kPicosPerMicro, 2, true, FabricKind::memory).run();
  EXPECT_EQ(in_memory.interrupted, "");
  EXPECT_GT(in_memory.verify->checked_elements, 0U);
  EXPECT_EQ(in_memory.verify->wrong_elements, 0U);
}

// Roots beside servers are ahead of others by up to a call when they find out, so the heir's keys
// may first be pushed for a later call than some root waits for.
TEST(BytePs, OtherServersTakeTheKeysOfADeadOneWhenever) {
  for (int at_us = 100; at_us < 3000; at_us += 50) {
    SmallJob job(3, 1, FabricKind::virtual_time);
    job.spec.collectives.algorithm(Func::all_reduce) = "byteps";
    job.spec.cluster.nic = {10e9, 5 * kPicosPerMicro};
    job.spec.cluster.servers.nic = job.spec.cluster.nic;
    job.spec.cluster.servers.count = 3;
    job.spec.cluster.servers.colocated = true;
    job.spec.cluster.servers.fails = 1;
    job.spec.cluster.servers.fails_at = at_us * kPicosPerMicro;
    AtServers& servers = job.spec.collectives.at_servers;
    servers.partition_bytes = 16'384;
    servers.timeout_ps = 20'000 * kPicosPerMicro;
    servers.elastic = true;
    job.spec.run.verify = true;
    job.spec.run.iterations = 4;
    for (std::uint32_t tensor = 1; tensor < 9; ++tensor)
      job.compute(5 * kPicosPerMicro)
          .collective(Func::all_reduce, 4'000 * tensor, DataType::float32, 0, tensor);
    const Result result = job.run();
    ASSERT_EQ(result.interrupted, "") << at_us;
    ASSERT_EQ(result.iterations.size(), 4U) << at_us;
    EXPECT_EQ(result.verify->wrong_elements, 0U) << at_us;
  }
}

// A time-out shorter than answers wait at NICs: servers that live are taken for dead.
TEST(BytePs, ASecondDeadServerEndsTheRun) {
  SmallJob job(4, 1, FabricKind::virtual_time);
  job.spec.collectives.algorithm(Func::all_reduce) = "byteps";
  job.spec.cluster.nic = {1e9, 5 * kPicosPerMicro};
  job.spec.cluster.servers.nic = job.spec.cluster.nic;
  job.spec.cluster.servers.count = 4;
  job.spec.cluster.servers.colocated = true;
  AtServers& servers = job.spec.collectives.at_servers;
  servers.partition_bytes = 4096;
  servers.timeout_ps = 50 * kPicosPerMicro;
  servers.elastic = true;
  job.collective(Func::all_reduce, 300'000, DataType::float32, 0, 1);
  const Result result = job.run();
  EXPECT_NE(result.interrupted.find("does not answer, nor did server"), std::string::npos)
      << result.interrupted;
}

// Nodes are late in turn: servers that wait for all take the sum of each step's latest node, others
// the largest of the nodes' own sums.
TEST(BytePs, AsynchronousServersLetNodesGoAhead) {
  const auto seconds = [](bool waits) {
    SmallJob job = server_job("byteps", 4, 2, 0);
    job.program().streams[0] = {};
    job.compute(1000 * kPicosPerMicro)
        .collective(Func::all_reduce, 10'000, DataType::float32, 0, 1);
    job.spec.collectives.at_servers.waits = waits;
    job.spec.run.jitter = 0.5;
    job.spec.run.iterations = 30;
    const Result result = job.run();
    EXPECT_EQ(result.interrupted, "");
    double all = 0;
    for (const IterationReport& i : result.iterations) all += i.seconds;
    return all;
  };
  EXPECT_LT(seconds(false), 0.85 * seconds(true));
}

}  // namespace
}  // namespace ghostrank
