// The bytes on the wire of NCCL's rings with LL and LL128, whose messages mix flags with the data:
//
//   LL      lines of 16 bytes: 4 of data, 4 of flag, 4 of data, 4 of flag
//   LL128   lines of 128 bytes: 120 of data, 8 of flag; always in units of 16 lines
//
// The test itself computes the expected pieces of a channel's data, how often each is sent, and its
// lines. Only the split over channels comes from nccl_split(), which split_test.cpp checks.
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/nccl/nccl.h"
#include "tests/collectives/nccl/support.h"

namespace ghostrank {
namespace {

using namespace nccl_testing;  // NOLINT: this file is made of them

// Fills line after line until the data is used up, and so rounds without a division.
std::uint64_t filled(std::uint64_t data, std::uint64_t data_of_unit, std::uint64_t unit) {
  std::uint64_t wire = 0;
  for (std::uint64_t at = 0; at < data; at += data_of_unit) wire += unit;
  return wire;
}

std::uint64_t wire_bytes(Protocol protocol, std::uint64_t data) {
  return protocol == Protocol::ll ? filled(data, 4 + 4, 16)
                                  : filled(data, std::uint64_t{16} * 120, std::uint64_t{16} * 128);
}

// Messages of all ranks by (channel, bytes of data).
using Messages = std::map<std::pair<int, std::uint64_t>, std::uint64_t>;

// Adds the messages that all ranks send on a channel that holds `data` bytes.
void expect_channel(const Collective& c, Protocol protocol, int channel, std::uint64_t data,
                    Messages& messages) {
  const auto n = static_cast<std::uint64_t>(c.size);
  const std::uint64_t chunk = protocol == Protocol::ll ? 32768 : 576000;
  if (c.func != Func::all_reduce) {
    const bool chain = c.func == Func::broadcast || c.func == Func::reduce;
    for (std::uint64_t at = 0; at < data; at += chunk)
      messages[{channel, std::min(chunk, data - at)}] += chain ? n - 1 : n * (n - 1);
    return;
  }
  for (std::uint64_t at = 0; at < data; at += n * chunk) {
    const std::uint64_t rest = data - at;
    // The last loop gives every rank the same number of elements, rounded up to 16 bytes.
    std::uint64_t piece = chunk;
    if (rest < n * chunk) {
      piece = (rest / c.element_bytes + n - 1) / n * c.element_bytes;
      piece = (piece + 15) / 16 * 16;
    }
    for (std::uint64_t k = 0; k < n; ++k) {
      const std::uint64_t begin = std::min(rest, k * piece);
      messages[{channel, std::min(piece, rest - begin)}] += 2 * (n - 1);
    }
  }
}

Messages expected_messages(const Collective& c, Protocol protocol, int channels) {
  const NcclTask task{c.func, c.size, c.count, c.element_bytes, protocol, channels};
  const NcclSplit split = nccl_split({&task, 1}, channels, NcclVersion::v2_30).front();
  Messages messages;
  std::uint64_t elements = 0;
  for (int i = 0; i < split.channels; ++i) {
    expect_channel(c, protocol, split.first + i, split.count(i) * c.element_bytes, messages);
    elements += split.count(i);
  }
  EXPECT_EQ(elements, c.count);
  return messages;
}

// Returns the schedule's messages; expects each to have the bytes on the wire that its data takes.
Messages sent_messages(const Schedule& schedule) {
  const Collective& c = schedule.collective();
  Messages messages;
  for (GroupRank r = 0; r < c.size; ++r)
    for (int a = 0; a < schedule.actors(r); ++a) {
      const Actor actor = schedule.actor(r, a);
      for (int k = 0; k < actor.steps; ++k) {
        const Step step = schedule.step(r, a, k);
        for (std::uint32_t s = 0; s < step.slices && !step.send_to.empty(); ++s) {
          const std::uint64_t elements = slice_of(step.send, step, s).count;
          const std::uint64_t data = elements * c.element_bytes;
          EXPECT_EQ(message_bytes(schedule.protocol(), elements, c.element_bytes),
                    wire_bytes(schedule.protocol(), data))
              << data << " bytes, " << name_of(schedule.protocol());
          ++messages[{actor.channel, data}];
        }
      }
    }
  return messages;
}

std::uint64_t total_wire(Protocol protocol, const Messages& messages) {
  std::uint64_t total = 0;
  for (const auto& [key, times] : messages) total += times * wire_bytes(protocol, key.second);
  return total;
}

void expect_exact(const Collective& c, Protocol protocol, int channels) {
  const Communicator comm = communicator(channels, protocol);
  const auto schedule = find_algorithm("nccl-2.30", c.func, "ring")->make(c, comm);
  SCOPED_TRACE(describe(*schedule, comm));
  ASSERT_EQ(schedule->protocol(), protocol);
  const Messages expected = expected_messages(c, protocol, channels);
  EXPECT_EQ(sent_messages(*schedule), expected);
  EXPECT_EQ(check(*schedule).bytes, total_wire(protocol, expected));
}

// Counts of elements: 1, and those at or next to multiples of 8, 16, 120 and 1920 bytes.
std::set<std::uint64_t> ragged_counts(std::uint64_t element_bytes) {
  std::set<std::uint64_t> counts{1};
  for (const std::uint64_t bytes : {8, 16, 120, 240, 1920, 5760})
    for (const std::uint64_t count :
         {bytes / element_bytes - 1, bytes / element_bytes, bytes / element_bytes + 1})
      if (count > 0) counts.insert(count);
  return counts;
}

constexpr Protocol kFlagged[] = {Protocol::ll, Protocol::ll128};

TEST(NcclFlags, TakeWholeLines) {
  struct Row {
    std::uint64_t data, ll, ll128;
  };
  for (const Row& row : std::vector<Row>{{0, 0, 0},
                                         {1, 16, 2048},
                                         {7, 16, 2048},
                                         {8, 16, 2048},
                                         {9, 32, 2048},
                                         {15, 32, 2048},
                                         {16, 32, 2048},
                                         {17, 48, 2048},
                                         {119, 240, 2048},
                                         {120, 240, 2048},
                                         {121, 256, 2048},
                                         {1919, 3840, 2048},
                                         {1920, 3840, 2048},
                                         {1921, 3856, 4096},
                                         {3840, 7680, 4096},
                                         {32768, 65536, 36864},
                                         {576000, 1152000, 614400}})
    for (const std::uint32_t element_bytes : {1U, 2U, 4U, 8U}) {
      if (row.data % element_bytes != 0) continue;
      const std::uint64_t elements = row.data / element_bytes;
      EXPECT_EQ(message_bytes(Protocol::ll, elements, element_bytes), row.ll) << row.data;
      EXPECT_EQ(message_bytes(Protocol::ll128, elements, element_bytes), row.ll128) << row.data;
    }
}

TEST(NcclFlags, AreCountedExactlyInRaggedCalls) {
  for (const Func func : kRingFuncs)
    for (const Protocol protocol : kFlagged)
      for (const int size : {2, 3, 8})
        for (const std::uint32_t element_bytes : {1U, 2U, 4U, 8U})
          for (const std::uint64_t count : ragged_counts(element_bytes))
            for (const int channels : {1, 4}) {
              expect_exact({func, size, count, element_bytes, size - 1}, protocol, channels);
              if (HasFailure()) return;
            }
}

// Up to three chunks of a channel. Types of 8 bytes keep the checker fast on LL128's large chunks.
TEST(NcclFlags, AreCountedExactlyOverChunksAndChannels) {
  for (const Func func : kRingFuncs)
    for (const Protocol protocol : kFlagged)
      for (const int size : {2, 5})
        for (const std::uint32_t element_bytes : {1U, 4U, 8U}) {
          if (protocol == Protocol::ll128 && element_bytes != 8) continue;
          const std::uint64_t chunk = (protocol == Protocol::ll ? 32768U : 576000U) / element_bytes;
          for (const std::uint64_t count : {chunk - 1, chunk, chunk + 1, 3 * chunk - 1})
            for (const int channels : {1, 3, 16}) {
              expect_exact({func, size, count, element_bytes, 0}, protocol, channels);
              if (HasFailure()) return;
            }
        }
}

}  // namespace
}  // namespace ghostrank
