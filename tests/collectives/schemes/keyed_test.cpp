// Schemes whose servers hold keys: agents proved for sums and traffic; keys, hashes and splits
// against the numbers of their sources.
#include "collectives/schemes/keyed/keyed.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

#include "collectives/check/agents/checker.h"
#include "collectives/common/by_call.h"
#include "collectives/compress/byteps.h"
#include "collectives/schemes/keyed/key_schemes.h"
#include "collectives/schemes/keyed/keys.h"
#include "collectives/schemes/keyed/nesterov.h"
#include "tests/collectives/calls.h"
#include "tests/method_named.h"

namespace ghostrank {
namespace {

using testing::all_reduce;

using Make = std::unique_ptr<Ends> (*)(int, const Communicator&);
constexpr std::pair<const char*, Make> kSchemesWithKeys[] = {
    {"parameter_server", parameter_server_ends},
    {"byteps", byteps_ends},
    {"phub", phub_ends},
    {"phub_racks", phub_racks_ends}};

// Pieces of 64 bytes, so that few elements make many pieces; `gpus` ranks on each node.
Communicator on_nodes(int ranks, int gpus, int places, int beside = 0) {
  Communicator comm;
  for (int r = 0; r < ranks; ++r) comm.node_of.push_back(r / gpus);
  comm.at_servers = {.places = places, .beside = beside, .nics = 2, .cores = 3};
  comm.at_servers.partition_bytes = comm.at_servers.chunk_bytes = 64;
  comm.at_servers.big_array = 20;
  return comm;
}

TEST(KeyServers, SumRightAndSendWhatTheySayOnNodesOfEverySize) {
  for (const auto& [name, make] : kSchemesWithKeys)
    for (const auto& [ranks, gpus] : {std::pair(1, 1), std::pair(2, 1), std::pair(5, 1),
                                      std::pair(4, 2), std::pair(3, 3), std::pair(7, 3)})
      for (const std::uint64_t count : {0, 1, 2, 25, 500}) {
        const auto ends =
            make(ranks, on_nodes(ranks, gpus, std::min(2, (ranks + gpus - 1) / gpus)));
        const AgentProof proof = prove(*ends, all_reduce(ranks, count), 20);
        EXPECT_TRUE(proof.report.ok) << name << ", " << ranks << " ranks, " << gpus
                                     << " a node, count " << count << ": " << proof.report.error;
      }
}

TEST(KeyServers, SumRightUnderACreditWithAScheduleAndInTheBestSplit) {
  for (const bool bound : {false, true})
    for (const std::uint64_t credit : {0, 9'000, 100'000}) {
      Communicator comm = on_nodes(6, 2, 4, 3);
      comm.at_servers.bound = bound;
      comm.at_servers.schedules = true;
      comm.at_servers.credit_bytes = credit;
      comm.at_servers.partition_bytes = 4096;
      const auto ends = byteps_ends(6, comm);
      const AgentProof proof = prove(*ends, all_reduce(6, 10'000), 40);
      EXPECT_TRUE(proof.report.ok) << proof.report.error;
    }
}

// Nodes get ready at different times, so under a credit of one piece they push in different orders:
// one begins with the first piece of a call, another goes on with a piece of an earlier call. The
// server must return each node's credit although the other node has not pushed the same piece.
TEST(BytePs, DoesNotWaitForEverUnderACreditOfOnePiece) {
  for (const int gpus : {1, 2}) {
    Communicator comm = on_nodes(4, gpus, 2);
    comm.at_servers.credit_bytes = 1;
    const auto ends = byteps_ends(4, comm);
    const std::vector<Call> calls = calls_like(all_reduce(4, 5'000), DataType::float32, 6);
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      AgentCheckOptions options{.seed = seed, .pause = 20'000'000, .overlap = 4};
      options.slow = seed % 2 == 0 ? 0.2 : 0;
      const AgentReport report = check(*ends, calls, options);
      ASSERT_TRUE(report.ok) << report.error;
    }
  }
}

// Records the keys that an agent pushes and the calls that it ends.
class Recorder final : public Io {
 public:
  using Io::send;
  bool send(std::span<const GroupParty>, const Note& note, Carriage) override {
    if (static_cast<KeyTag>(note.tag) == KeyTag::push) pushed.push_back(note.index);
    return true;
  }
  void arm(std::uint32_t, Picoseconds) override {}
  void disarm(std::uint32_t) override {}
  void spend(Picoseconds) override {}
  void done(std::uint32_t call) override { ended.push_back(call); }
  Tensor& tensor(std::uint32_t) override { return empty_; }

  std::vector<std::uint32_t> pushed, ended;

 private:
  class Nothing final : public Tensor {
   public:
    std::span<const std::byte> read(std::uint64_t, std::uint64_t) override { return {}; }
    void write(std::uint64_t, std::span<const std::byte>) override {}
    bool nonzero(std::uint64_t, std::uint64_t) override { return true; }
  };
  Nothing empty_;
};

// BPS-4: the bytes in flight to servers never exceed the credit. Waiting pieces leave by key, so
// that a tensor that is ready late but needed early overtakes.
TEST(BytePs, KeepsToItsCreditAndLetsTheFrontOfTheModelOvertake) {
  Communicator comm = on_nodes(2, 1, 1);
  comm.at_servers.partition_bytes = 4096;
  comm.at_servers.credit_bytes = 2 * 4096;
  comm.at_servers.tensors = {{2048, 4}, {6 * 1024, 4}};
  const auto ends = byteps_ends(2, comm);
  const auto worker = ends->agent(0);
  Recorder io;
  const auto call = [&](std::uint32_t number, std::uint32_t tensor) {
    const std::uint64_t count = comm.at_servers.tensors[tensor - 1].elements;
    worker->on_call(io, {number, all_reduce(2, count), DataType::float32, {}, tensor});
  };
  const auto answer = [&](KeyTag tag, std::uint32_t number, std::uint32_t key) {
    Note note{.tag = static_cast<std::uint8_t>(tag), .call = number, .index = key};
    worker->on_note(io, 2, note);
  };
  const auto arrive = [&](std::uint32_t number, std::uint32_t key) {
    answer(KeyTag::pushed, number, key);
  };
  constexpr std::uint32_t kBack = 1 << 16, kFront = 0;
  call(0, 2);
  EXPECT_EQ(io.pushed, (std::vector<std::uint32_t>{kBack, kBack + 1}));  // two of six fit
  call(1, 1);
  EXPECT_EQ(io.pushed.size(), 2U);
  arrive(0, kBack);
  arrive(0, kBack + 1);
  EXPECT_EQ(io.pushed, (std::vector<std::uint32_t>{kBack, kBack + 1, kFront, kFront + 1}));
  answer(KeyTag::result, 0, kBack);
  EXPECT_EQ(io.pushed.size(), 4U);  // a result gives no credit back
  arrive(1, kFront);
  arrive(1, kFront + 1);
  EXPECT_EQ(io.pushed.size(), 6U);
  answer(KeyTag::result, 1, kFront);
  answer(KeyTag::result, 1, kFront + 1);
  EXPECT_EQ(io.ended, std::vector<std::uint32_t>{1});
}

TEST(KeyServers, AreRefusedWhereThereAreNone) {
  for (const auto& [name, make] : kSchemesWithKeys)
    EXPECT_THROW(make(4, on_nodes(4, 1, 0)), std::invalid_argument) << name;
  Communicator comm = on_nodes(4, 1, 3);
  comm.at_servers.hash = KeyHash::mixed;
  EXPECT_THROW(byteps_ends(4, comm), std::invalid_argument);
}

std::uint64_t bytes_to(const Ends& ends, const Call& call, GroupParty party) {
  std::uint64_t bytes = 0;
  for (const Ends::Edge& edge : ends.traffic(call))
    if (edge.to == party) bytes += edge.bytes;
  return bytes;
}

// VGG16's tensors in the order of torchvision's module: 553,430,176 bytes.
std::vector<AtServers::Tensor> vgg16() {
  std::vector<AtServers::Tensor> tensors;
  const auto add = [&](std::uint64_t weights, std::uint64_t bias) {
    tensors.push_back({weights, 4});
    tensors.push_back({bias, 4});
  };
  std::uint64_t in = 3;
  for (const std::uint64_t out : {64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512}) {
    add(in * out * 9, out);
    in = out;
  }
  add(512ULL * 49 * 4096, 4096);
  add(4096ULL * 4096, 4096);
  add(4096ULL * 1000, 1000);
  return tensors;
}

// BPS-1. The number of partitions follows from a published list of tensors, the max/mean loads from
// BytePS's own formulas on these keys.
TEST(BytePsKeys, PartitionVgg16As162PiecesAndLoadServersAsTheHashDoes) {
  std::vector<std::uint32_t> keys;
  std::vector<std::uint64_t> bytes;
  std::uint64_t total = 0;
  const std::vector<AtServers::Tensor> tensors = vgg16();
  for (std::uint32_t t = 0; t < tensors.size(); ++t) {
    std::uint32_t part = 0;
    for (const std::uint64_t n :
         equal_parts(tensors[t].elements, byteps_partition(4'096'000, 1) / 4)) {
      keys.push_back(t << 16 | part++);
      bytes.push_back(n * 4);
      total += n * 4;
    }
  }
  EXPECT_EQ(total, 553'430'176U);
  EXPECT_EQ(keys.size(), 162U);
  const auto load = [&](KeyHash hash, int servers) {
    std::vector<double> at(servers);
    for (std::size_t i = 0; i < keys.size(); ++i)
      at[server_of_key(hash, keys[i], servers, 0)] += static_cast<double>(bytes[i]);
    return *std::max_element(at.begin(), at.end()) * servers / static_cast<double>(total);
  };
  const std::tuple<int, double, double> published[] = {
      {2, 1.00, 1.04}, {4, 1.06, 1.04}, {8, 1.12, 1.05}, {16, 1.66, 1.11}};
  for (const auto& [servers, djb2, naive] : published) {
    EXPECT_NEAR(load(KeyHash::djb2, servers), djb2, 0.006) << servers;
    EXPECT_NEAR(load(KeyHash::naive, servers), naive, 0.006) << servers;
  }
}

TEST(BytePsKeys, HashAsTheSourceDoes) {
  // h = 5381; h = 33 h + c over "65537".
  std::uint64_t djb2 = 5381;
  for (const char c : {'6', '5', '5', '3', '7'}) djb2 = 33 * djb2 + static_cast<std::uint64_t>(c);
  EXPECT_EQ(hash_of_key(KeyHash::djb2, 65537), djb2);
  EXPECT_EQ(hash_of_key(KeyHash::naive, 3 << 16 | 5), (3 + 5) * 9973U);
  EXPECT_EQ(hash_of_key(KeyHash::sdbm, 0), std::uint64_t{'0'});
  EXPECT_EQ(byteps_partition(4'096'000, 8), 4'096'000U);
  EXPECT_EQ(byteps_partition(4'096'000, 16), 4'128'768U);
}

// CPU machines get about the share of keys that the formula's threshold gives them.
TEST(BytePsKeys, MixedSendsTheFormulasShareToCpuMachines) {
  const int n = 8, k = 4;
  int cpu = 0;
  std::set<int> used;
  for (std::uint32_t key = 0; key < 20'000; ++key) {
    const int server = server_of_key(KeyHash::mixed, key, n + k, n);
    cpu += server < k;
    used.insert(server);
  }
  EXPECT_NEAR(cpu / 20'000.0, 2.0 * k * (n - 1) / (n * (n + k) - 2.0 * k), 0.03);
  EXPECT_EQ(used.size(), 12U);
  EXPECT_EQ(*used.rbegin(), 11);
}

// The table of the theorem: n, k, time, share of a CPU and of a GPU machine.
TEST(BestSplit, IsTheTheorems) {
  const std::tuple<int, int, double, double, double> published[] = {
      {4, 0, 1.500, 0, .250},     {4, 1, 1.333, .333, .167},  {4, 2, 1.200, .300, .100},
      {4, 4, 1.000, .250, 0},     {8, 2, 1.474, .184, .079},  {8, 4, 1.273, .159, .045},
      {16, 8, 1.304, .082, .022}, {32, 8, 1.570, .049, .019}, {32, 32, 1.000, .031, 0}};
  for (const auto& [n, k, time, cpu, gpu] : published) {
    EXPECT_NEAR(best_time(n + k, n, n), time, 0.001) << n << " " << k;
    const std::vector<double> shares = best_split(n + k, n);
    if (k > 0) {
      EXPECT_NEAR(shares.front(), cpu, 0.001) << n << " " << k;
    }
    EXPECT_NEAR(shares.back(), gpu, 0.001) << n << " " << k;
    EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 1, 1e-12);
  }
  EXPECT_EQ(best_time(2, 0, 8), 4);  // k servers alone: n / k
}

// BPS-2: a server's elements differ from its share by at most 1, whatever the tensors are.
TEST(BestSplit, GivesEveryServerItsShareToTheElement) {
  for (const auto& [n, k] : {std::pair(4, 1), std::pair(8, 4), std::pair(32, 8)}) {
    Communicator comm = on_nodes(n, 1, n + k, n);
    comm.at_servers.bound = true;
    comm.at_servers.partition_bytes = 100'000;
    comm.at_servers.tensors = vgg16();
    const auto ends = byteps_ends(n, comm);
    std::vector<double> got(n + k);
    double total = 0;
    for (std::uint32_t t = 1; t <= comm.at_servers.tensors.size(); ++t) {
      const Call call{
          t, all_reduce(n, comm.at_servers.tensors[t - 1].elements), DataType::float32, {}, t};
      const auto pieces = dynamic_cast<const KeyedEnds&>(*ends).pieces(call);
      for (const KeyPiece& piece : *pieces) {
        got[piece.helper] += static_cast<double>(piece.elements);
        total += static_cast<double>(piece.elements);
      }
    }
    EXPECT_EQ(total, 138'357'544);
    const std::vector<double> shares = best_split(n + k, n);
    for (int s = 0; s < n + k; ++s) EXPECT_NEAR(got[s], shares[s] * total, 1.001) << n << " " << s;
  }
}

TEST(ParameterServer, SharesBigArraysAndHashesSmallOnes) {
  const auto ends = parameter_server_ends(2, on_nodes(2, 1, 4));
  const Call big{0, all_reduce(2, 100), DataType::float32, {}, 3},
      small{0, all_reduce(2, 19), DataType::float32, {}, 3};
  for (int s = 0; s < 4; ++s) {
    EXPECT_EQ(bytes_to(*ends, big, 2 + s), 2 * (2 * 64 + 100U));
    EXPECT_EQ(bytes_to(*ends, small, 2 + s), s == 2 * 9973 % 4 ? 2 * (2 * 64 + 76U) : 0);
  }
}

// PHB-1.
TEST(Phub, BalancesChunksOverNicsQueuePairsAndCores) {
  const auto unevenness = [](std::uint64_t chunk, int bins) {
    std::vector<std::uint64_t> sizes;
    for (const AtServers::Tensor& tensor : vgg16())
      for (const std::uint64_t n : equal_parts(tensor.elements, chunk / 4)) sizes.push_back(4 * n);
    const std::vector<int> bin = longest_first(sizes, bins);
    std::vector<double> load(bins);
    for (std::size_t i = 0; i < sizes.size(); ++i) load[bin[i]] += static_cast<double>(sizes[i]);
    const double most = *std::max_element(load.begin(), load.end());
    const double mean = std::accumulate(load.begin(), load.end(), 0.0) / bins;
    // A whole tensor may exceed the mean load; no assignment has then a lower maximum than it.
    const auto largest = static_cast<double>(*std::max_element(sizes.begin(), sizes.end()));
    return most / std::max(mean, largest);
  };
  for (const int bins : {10, 4, 20}) {
    EXPECT_LE(unevenness(32 << 10, bins), 1.02) << bins;
    EXPECT_LE(unevenness(1ULL << 40, bins), 4.0 / 3) << bins;
  }
}

// PHB-2: a piece takes one note from each node and one back; a key has one helper and one core.
TEST(Phub, SendsResultsWithoutPullsFromOneCorePerKey) {
  Communicator comm = on_nodes(4, 1, 1);
  comm.at_servers.tensors = {{1000, 4}, {37, 4}};
  const auto ends = phub_ends(4, comm);
  const auto& keyed = dynamic_cast<const KeyedEnds&>(*ends);
  std::set<std::uint32_t> keys;
  for (std::uint32_t t = 1; t <= 2; ++t) {
    const Call call{
        0, all_reduce(4, comm.at_servers.tensors[t - 1].elements), DataType::float32, {}, t};
    std::uint64_t pieces = 0, messages = 0;
    const auto all = keyed.pieces(call);
    for (const KeyPiece& piece : *all) {
      EXPECT_TRUE(keys.insert(piece.key).second);
      EXPECT_GE(keyed.core_of(piece.key), 0);
      EXPECT_LT(keyed.core_of(piece.key), 3);
      ++pieces;
    }
    for (const Ends::Edge& edge : ends->traffic(call)) messages += edge.messages;
    EXPECT_EQ(messages, 2 * 4 * pieces);
  }
}

// PHB-2: weights equal those of the reference, element by element, after ten steps of each tensor,
// whatever the nodes, the type, and the order in which nodes get ready. Calls of one tensor may
// overlap; those that name none, and those of integers, stay sums.
TEST(Phub, StepsWeightsAsTheReferenceDoes) {
  const std::tuple<Make, int, int, int> kCases[] = {
      {phub_ends, 1, 1, 2},       {phub_ends, 5, 1, 2},       {phub_ends, 7, 3, 2},
      {phub_racks_ends, 5, 1, 2}, {phub_racks_ends, 7, 2, 3}, {phub_racks_ends, 4, 1, 4}};
  for (const auto& [make, ranks, gpus, places] : kCases)
    for (const DataType type :
         {DataType::float32, DataType::bfloat16, DataType::float16, DataType::int32}) {
      const auto ends = make(ranks, on_nodes(ranks, gpus, places));
      std::vector<Call> calls;
      for (std::uint32_t i = 0; i < 40; ++i) {
        const std::uint32_t tensor = i % 4;  // 0: none
        Call call{i, all_reduce(ranks, 1 + 50 * tensor), type, {}, tensor};
        call.collective.element_bytes = bytes_of(type);
        calls.push_back(call);
        EXPECT_EQ(ends->expected(call) != nullptr, tensor > 0 && type != DataType::int32);
      }
      for (std::uint64_t seed = 0; seed < 4; ++seed) {
        AgentCheckOptions options{.seed = seed, .pause = 20'000'000, .overlap = 5};
        options.slow = options.no_room = seed % 2 == 0 ? 0.1 : 0;
        const AgentReport report = check(*ends, calls, options);
        ASSERT_TRUE(report.ok) << ranks << " ranks, " << name_of(type) << ": " << report.error;
      }
    }
}

// With NICs for other racks alone, sums and steps stay the same, and only these NICs cross racks.
TEST(PhubRacks, PassOnWhatRacksExchangeOnNicsOfTheirOwn) {
  for (const auto& [ranks, gpus, racks, nics, rack_nics] :
       {std::tuple(5, 1, 2, 2, 1), std::tuple(7, 2, 3, 3, 2), std::tuple(4, 1, 4, 4, 1)}) {
    Communicator comm = on_nodes(ranks, gpus, racks);
    comm.at_servers.nics = nics;
    comm.at_servers.rack_nics = rack_nics;
    comm.at_servers.optimizer = {0.5F, 0.25F};
    const auto ends = phub_racks_ends(ranks, comm);
    for (const std::uint64_t count : {0, 1, 25, 500}) {
      const AgentProof proof = prove(*ends, all_reduce(ranks, count), 12);
      EXPECT_TRUE(proof.report.ok) << ranks << " ranks: " << proof.report.error;
    }
    std::vector<Call> steps = calls_like(all_reduce(ranks, 200), DataType::float32, 12);
    for (Call& call : steps) call.tensor = 1 + call.number % 3;
    const AgentReport report = check(*ends, steps, {.pause = 20'000'000, .overlap = 5});
    EXPECT_TRUE(report.ok) << report.error;
    const int first_relay = ranks + racks * (nics - rack_nics);
    for (const Ends::Edge& edge : ends->traffic({0, all_reduce(ranks, 500)})) {
      const bool across = edge.from >= ranks && edge.to >= ranks &&
                          (edge.from - ranks) % racks != (edge.to - ranks) % racks;
      EXPECT_EQ(across, edge.from >= first_relay && edge.to >= first_relay);
    }
  }
  Communicator all_for_racks = on_nodes(4, 1, 2);
  all_for_racks.at_servers.rack_nics = all_for_racks.at_servers.nics;
  EXPECT_THROW(phub_racks_ends(4, all_for_racks), std::invalid_argument);
}

// Calls end in any order, one of them much later than the rest, and numbers wrap.
TEST(ByCall, FindsOpenCallsByTheirNumbers) {
  ByCall<std::uint32_t> values;
  std::uint32_t next = 0xffffff00;
  std::set<std::uint32_t> open;
  std::mt19937 random(1);
  for (int i = 0; i < 5000; ++i, ++next) {
    values.open(next, next * 3);
    open.insert(next);
    while (open.size() > 1 + random() % 30) {
      const auto one = std::next(open.begin(), static_cast<std::ptrdiff_t>(random() % open.size()));
      if (i < 1000 && *one == 0xffffff07) break;
      values.close(*one);
      EXPECT_EQ(values.find(*one), nullptr);
      open.erase(one);
    }
    for (const std::uint32_t call : open) ASSERT_EQ(values.at(call), call * 3);
    std::set<std::uint32_t> seen;
    values.for_each([&](std::uint32_t value) { seen.insert(value); });
    ASSERT_EQ(seen.size(), open.size());
  }
  EXPECT_THROW(values.at(next), std::out_of_range);
}

// Every rank ends with the result of a reference that compresses node by node, bit by bit, in any
// order of pushes. Small tensors and unnamed ones stay exact sums.
TEST(BytePs, CompressesPiecesAndSumsAsTheReferenceDoes) {
  for (const char* name :
       {"onebit", "topk", "randomk", "qsgd", "natural", "fp16", "dithering", "dgc"})
    for (const Memory memory : {Memory::none, Memory::residual, Memory::nesterov})
      for (const auto& [ranks, gpus] : {std::pair(1, 1), std::pair(4, 1), std::pair(5, 2)}) {
        SCOPED_TRACE(std::string(name) + " with " + std::string(name_of(memory)) + ", " +
                     std::to_string(ranks) + " ranks");
        Communicator comm = on_nodes(ranks, gpus, 2);
        comm.at_servers.partition_bytes = 4096;
        comm.at_servers.tensors = {{3000, 4}, {100, 4}, {1025, 4}};
        PieceCompression how{&byteps_form(method_named(name)), {}, memory, 4096};
        how.options.ratio = 0.1;
        how.time = [](std::uint64_t elements) {
          return CodecTime{static_cast<Picoseconds>(elements) * 1000, 500'000};
        };
        how.expected = [](std::uint64_t) { return PayloadSizes{1, 1}; };
        comm.at_servers.compression = std::make_shared<const PieceCompression>(how);
        const auto ends = byteps_ends(ranks, comm);
        EXPECT_EQ(ends->exact(), !how.method->measure);
        std::vector<Call> calls = calls_like(all_reduce(ranks, 0), DataType::float32, 12);
        for (Call& call : calls) {
          call.tensor = call.number % 4;
          call.collective.count =
              call.tensor == 0 ? 700 : comm.at_servers.tensors[call.tensor - 1].elements;
          EXPECT_EQ(ends->expected(call) != nullptr, call.tensor == 1 || call.tensor == 3);
        }
        for (std::uint64_t seed = 0; seed < 3; ++seed) {
          AgentCheckOptions options{.seed = seed, .pause = 20'000'000, .overlap = 5};
          options.slow = options.no_room = seed == 0 ? 0.1 : 0;
          if (seed == 2) options.overlap = 1, options.pause = 0;
          const AgentReport report = check(*ends, calls, options);
          ASSERT_TRUE(report.ok) << report.error;
        }
        Call ints = calls[1];
        ints.type = DataType::int32;
        EXPECT_NE(ends->refuses(ints), "");
        // Keys hold 16 bits of a tensor's number; those of this one are not the first tensor's.
        ints.tensor = (1 << 16) + 1;
        EXPECT_EQ(ends->refuses(ints), "");
        EXPECT_EQ(ends->expected(ints), nullptr);
      }
}

// Where a threshold selects nothing of a node's piece, or of the sum, the payload has no elements
// and stands for zeros. The first threshold selects some elements of some pieces, the second none.
TEST(BytePs, TakesPayloadsWithoutElementsForZeros) {
  for (const double threshold : {0.95, 100.0})
    for (const Memory memory : {Memory::none, Memory::residual})
      for (const auto& [ranks, gpus] : {std::pair(1, 1), std::pair(4, 1), std::pair(5, 2)}) {
        Communicator comm = on_nodes(ranks, gpus, 2);
        comm.at_servers.partition_bytes = 4096;
        comm.at_servers.tensors = {{3, 4}, {1025, 4}};
        PieceCompression how{&byteps_form(method_named("threshold")), {}, memory, 0};
        how.options.threshold = threshold * 0x1p24 / ranks;  // of the checker's largest number
        how.time = [](std::uint64_t) { return CodecTime{}; };
        how.expected = [](std::uint64_t) { return PayloadSizes{}; };
        comm.at_servers.compression = std::make_shared<const PieceCompression>(how);
        const auto ends = byteps_ends(ranks, comm);
        std::vector<Call> calls = calls_like(all_reduce(ranks, 0), DataType::float32, 12);
        for (Call& call : calls) {
          call.tensor = 1 + call.number % 2;
          call.collective.count = comm.at_servers.tensors[call.tensor - 1].elements;
        }
        for (const bool real : {true, false}) {
          const AgentReport report = check(*ends, calls, {.overlap = 5, .real_data = real});
          ASSERT_TRUE(report.ok) << threshold << " with " << name_of(memory) << ", " << ranks
                                 << " ranks: " << report.error;
        }
      }
}

// Across r racks a box sends 2 (r - 1) / r of the tensor's bytes, however many nodes its rack has.
// A key uses the NIC of the same number in every box: that of its owner.
TEST(PhubRacks, SendOneSumOfARackToAnother) {
  constexpr std::uint64_t kCount = 3 * 2 * 16 * 100;  // a whole number of chunks for every NIC
  for (const int racks : {2, 3})
    for (const int in_rack : {1, 2, 5}) {
      const int nodes = racks * in_rack;
      const auto ends = phub_racks_ends(nodes, on_nodes(nodes, 1, racks));
      std::vector<std::uint64_t> sent(racks), got(racks);
      std::uint64_t pushed = 0;
      for (const Ends::Edge& edge : ends->traffic({0, all_reduce(nodes, kCount)})) {
        if (edge.from < nodes) {
          pushed += edge.bytes;
          EXPECT_EQ(edge.from / in_rack, (edge.to - nodes) % racks);  // to its own rack's box
        } else if (edge.to >= nodes) {
          sent[(edge.from - nodes) % racks] += edge.bytes;
          got[(edge.to - nodes) % racks] += edge.bytes;
          EXPECT_EQ((edge.from - nodes) / racks, (edge.to - nodes) / racks);
        }
      }
      EXPECT_EQ(pushed, nodes * 4 * kCount);
      for (int r = 0; r < racks; ++r) {
        EXPECT_EQ(sent[r] * racks, 2 * (racks - 1) * 4 * kCount);
        EXPECT_EQ(got[r], sent[r]);
      }
    }
  EXPECT_THROW(phub_racks_ends(4, on_nodes(4, 2, 3)), std::invalid_argument);
}

// With the same gradient g in every step: m_k = g (1 - u^k) / (1 - u), and the weights move by
// -rate (g + u m_k).
TEST(Nesterov, TakesTheStepsOfItsClosedForm) {
  const Nesterov rule;
  std::vector<float> weights(3), moments(3);
  const std::vector<float> gradients{1, -40, 250};
  double moved = 0;  // by a gradient of 1
  for (int k = 1; k <= 10; ++k) {
    take_step(rule, weights, moments, gradients);
    const double u = rule.momentum;
    moved -= rule.rate * (1 + u * (1 - std::pow(u, k)) / (1 - u));
    for (std::size_t i = 0; i < weights.size(); ++i)
      EXPECT_NEAR(weights[i], moved * gradients[i], 1e-6 * std::abs(moved * gradients[i])) << k;
  }
}

}  // namespace
}  // namespace ghostrank
