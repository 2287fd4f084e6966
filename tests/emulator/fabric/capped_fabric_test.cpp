// Fabrics whose owner sends all that they take: below a cap the rate is the cap's.
#include <chrono>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "emulator/fabric/open.h"

namespace ghostrank {
namespace {

constexpr double kSeconds = 0.7;
constexpr std::uint64_t kBytes = 256 << 10, kMostWaiting = 8 * kBytes;

// Sends from one fabric to another over loopback for so long; returns the bytes that have arrived.
double carried(FabricKind kind, std::shared_ptr<SendCap> cap) {
  FabricOptions from, to;
  for (FabricOptions* o : {&from, &to}) {
    o->nonce = 7;
    o->mtu = 9000;
    o->endpoints = {{"127.0.0.1", ""}};
  }
  from.endpoints.front().cap = std::move(cap);
  const auto sender = open_fabric(kind, from), receiver = open_fabric(kind, to);
  sender->connect({{0, receiver->address(0), "receiver", 0}});
  receiver->connect({{0, sender->address(0), "sender", 0}});
  std::vector<Message> arrived;
  const auto pass = [&] {
    sender->poll(arrived);
    receiver->poll(arrived);
    arrived.clear();
  };
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto until = now() + std::chrono::duration<double>(kSeconds);
  double bytes = 0;
  while (now() < until) {
    Message message;
    message.header.nonce = 7;
    message.header.bytes = kBytes;
    if (sender->stats().bytes_waiting < kMostWaiting) sender->try_send(0, message);
    pass();
  }
  bytes = static_cast<double>(receiver->stats().bytes_received);
  while (!sender->idle() && sender->failure().empty()) pass();
  EXPECT_EQ(sender->failure(), "");
  return bytes;
}

TEST(CappedFabric, CarriesWhatTheCapAllowsAndNoMore) {
  for (const FabricKind kind : {FabricKind::ofi, FabricKind::packets}) {
    SCOPED_TRACE(name_of(kind));
    const double open = 8 * carried(kind, nullptr) / kSeconds;
    constexpr double kCap = 50e6;
    ASSERT_GT(open, 4 * kCap) << "the machine is too busy to tell";
    const double capped = 8 * carried(kind, std::make_shared<SendCap>(kCap, 9000)) / kSeconds;
    EXPECT_LE(capped, kCap + 8 * kBytes / kSeconds);
    EXPECT_GT(capped, 0.4 * kCap) << "a starved process sends less than the cap allows";
  }
}

}  // namespace
}  // namespace ghostrank
