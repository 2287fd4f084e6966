// Memory that the control plane holds for frames: the send queue has a bound, and receiving a few
// bytes takes no more memory than they need.
#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "emulator/control/control.h"
#include "emulator/control/frames.h"
#include "emulator/control/meet.h"

// Bytes that this thread has allocated.
static thread_local std::size_t allocated_bytes = 0;
// While set, allocation fails in threads other than the test's.
static std::atomic<bool> others_starve{false};
static thread_local bool is_other = true;

void* operator new(std::size_t bytes) {
  allocated_bytes += bytes;
  if (others_starve && is_other) throw std::bad_alloc();
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
// Inlined, they look to g++ 12 like free() of what new has returned.
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace ghostrank {
namespace {

TEST(FrameBuffer, TakesNoMoreMemoryThanWhatArrives) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  FrameBuffer buffer(kMaxFrameBytes);
  const std::string heartbeat = encode(FrameType::heartbeat);
  constexpr int kHeartbeats = 100;
  std::size_t taken = 0;
  allocated_bytes = 0;
  for (int i = 0; i < kHeartbeats; ++i) {
    ASSERT_EQ(send(ends[0], heartbeat.data(), heartbeat.size(), 0), std::ssize(heartbeat));
    ASSERT_TRUE(buffer.receive(ends[1]));
    taken += buffer.next().has_value();
  }
  EXPECT_LT(allocated_bytes, 4096u);
  EXPECT_EQ(taken, std::size_t{kHeartbeats});
  for (const int fd : ends) close(fd);
}

Bytes frame_of(FrameType type, std::size_t bytes) {
  return std::make_shared<const std::string>(encode(type, std::string(bytes, 'x')));
}

// All frames share one buffer, so pushing them costs nothing.
std::size_t fill(SendQueue& queue, const Bytes& frame) {
  std::size_t pushed = 0;
  while (pushed < 100'000'000 && queue.push(frame)) ++pushed;
  return pushed;
}

TEST(SendQueue, HoldsSoManyBytesAndHasRoomAgainWhenTheyAreSent) {
  SendQueue queue;
  const Bytes large = frame_of(FrameType::publish, 1 << 20);
  const std::size_t most = kMaxUnsentBytes / (large->size() + kWaitingBytes);
  EXPECT_EQ(fill(queue, large), most);
  queue.sent(large->size() - 1);
  EXPECT_EQ(queue.front(), "x");
  EXPECT_FALSE(queue.push(large)) << "its last byte still waits";
  queue.sent(1);
  EXPECT_EQ(queue.front().size(), large->size());
  EXPECT_TRUE(queue.push(large));
  EXPECT_FALSE(queue.push(large));
  for (std::size_t i = 0; i < most; ++i) queue.sent(large->size());
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(fill(queue, large), most);
  queue.clear();
  EXPECT_EQ(fill(queue, large), most);
}

TEST(SendQueue, CountsWhatSmallFramesCostToo) {
  SendQueue queue;
  EXPECT_LT(fill(queue, frame_of(FrameType::pong, 16)), kMaxUnsentBytes / kWaitingBytes);
}

TEST(SendQueue, TakesTheEndOfTheRunAndARoundThatIsOwedWhenItIsFull) {
  SendQueue queue;
  fill(queue, frame_of(FrameType::publish, 1 << 20));
  fill(queue, frame_of(FrameType::pong, 0));
  EXPECT_FALSE(queue.push(frame_of(FrameType::heartbeat, 0)));
  for (const FrameType type : {FrameType::stop, FrameType::goodbye, FrameType::gathered})
    EXPECT_TRUE(queue.push(frame_of(type, 100)));
  EXPECT_TRUE(queue.holds_gathered());
  while (!queue.empty()) queue.sent(queue.front().size());
  EXPECT_FALSE(queue.holds_gathered());
  EXPECT_TRUE(queue.push(frame_of(FrameType::publish, kMaxFrameBytes - 1)));
}

// Both control threads are starved; the first whose heartbeat comes due ends the run.
TEST(Control, EndsTheRunWhenItsThreadGetsNoMemory) {
  is_other = false;
  World world;
  world.size = 2;
  world.listener = std::make_shared<Fd>(listen_at(world));
  world.master_port = port_of(*world.listener);
  World second = world;
  second.rank = 1;
  second.listener.reset();
  std::unique_ptr<Control> other;
  std::thread met([&] { other = Control::meet(second); });
  const auto control = Control::meet(world);
  met.join();
  std::atomic<int> woken{0};
  control->on_stop([&] { ++woken; });
  other->on_stop([&] { ++woken; });
  others_starve = true;
  for (int naps = 0; naps < 5000 && woken < 2; ++naps) usleep(1000);
  others_starve = false;
  EXPECT_EQ(woken, 2);
  EXPECT_EQ(control->stop() == Stop::machine || other->stop() == Stop::machine, true);
  EXPECT_NE(control->stop_reason(), "");
}

}  // namespace
}  // namespace ghostrank
