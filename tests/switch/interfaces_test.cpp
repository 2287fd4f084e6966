// The compiled switch on real interfaces: four namespaces, a veth pair each, the switch at the
// other ends. Workers are packet sockets of this process. Skipped without root.
#include <arpa/inet.h>
#include <array>
#include <atomic>
#include <chrono>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <string>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "switch/live.h"
#include "tests/switch/support.h"

namespace ghostrank::switchml {
namespace {

constexpr int kWorkers = 4;

bool shell(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

// The switch's namespace and one per worker; all of them are removed at the end.
class Namespaces {
 public:
  Namespaces() : prefix_("grsw" + std::to_string(getpid() % 10'000)) {
    made_ = shell("ip netns add " + name(-1));
    for (int w = 0; made_ && w < kWorkers; ++w) {
      const std::string end = "p" + std::to_string(w);
      made_ = shell("ip netns add " + name(w)) &&
              shell("ip link add " + end + " netns " + name(-1) +
                    " type veth peer name eth0 netns " + name(w)) &&
              shell("ip -n " + name(-1) + " link set " + end + " up") &&
              shell("ip -n " + name(w) + " link set eth0 up");
    }
  }
  ~Namespaces() {
    for (int w = -1; w < kWorkers; ++w) shell("ip netns del " + name(w));
  }
  bool made() const { return made_; }
  std::string name(int w) const { return prefix_ + (w < 0 ? "s" : "w" + std::to_string(w)); }

  // Runs `f` in a namespace: what it opens stays there.
  template <typename F>
  auto inside(int w, F f) const {
    const int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    const int there = open(("/run/netns/" + name(w)).c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(setns(there, CLONE_NEWNET), 0);
    auto result = f();
    EXPECT_EQ(setns(home, CLONE_NEWNET), 0);
    close(home);
    close(there);
    return result;
  }

 private:
  std::string prefix_;
  bool made_ = false;
};

int packet_socket() {
  const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_IP));
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_IP);
  address.sll_ifindex = static_cast<int>(if_nametoindex("eth0"));
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return fd;
}

Bytes receive(int fd) {
  Bytes frame(2048);
  pollfd polled{fd, POLLIN, 0};
  if (poll(&polled, 1, 5'000) <= 0) return {};
  const ssize_t n = read(fd, frame.data(), frame.size());
  frame.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
  return frame;
}

TEST(SwitchOnInterfaces, SumsForFourWorkersInNamespaces) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root for network namespaces";
  const Namespaces net;
  if (!net.made()) GTEST_SKIP() << "network namespaces cannot be made here";
  CompiledSwitch sw(plan_of({job_of(kWorkers, 256)}, kWorkers));
  std::atomic<bool> stop{false}, started{false};
  const int bell = eventfd(1, EFD_CLOEXEC);  // rings at once: the first thing that the loop hears
  const Watch watch{bell, [&] {
                      eventfd_t rung = 0;
                      eventfd_read(bell, &rung);
                      started = true;
                    }};
  std::vector<PortName> ports;
  for (int w = 0; w < kWorkers; ++w) ports.push_back({"p" + std::to_string(w), {}, {}});
  std::thread at_work([&] {
    net.inside(-1, [&] {
      switchml::run(sw, *open_interfaces(ports), {watch}, stop);
      return 0;
    });
  });
  std::array<int, kWorkers> fd{};
  for (int w = 0; w < kWorkers; ++w) fd[static_cast<std::size_t>(w)] = net.inside(w, packet_socket);

  while (!started) std::this_thread::sleep_for(std::chrono::milliseconds(1));

  constexpr int kRounds = 200;
  int answered = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (int w = 0; w < kWorkers; ++w) {
      const Bytes frame = chunk(w, round % 4, round / 4 % 2, 1000 * round + w, 256);
      ASSERT_EQ(write(fd[static_cast<std::size_t>(w)], frame.data(), frame.size()),
                std::ssize(frame));
    }
    for (int w = 0; w < kWorkers; ++w) {
      const Bytes result = receive(fd[static_cast<std::size_t>(w)]);
      ASSERT_EQ(result.size(), frame_bytes(256)) << "round " << round << ", worker " << w;
      for (int i = 0; i < 256; ++i) ASSERT_EQ(element(result, i), 4 * (1000 * round + i) + 6);
      ++answered;
    }
  }
  stop = true;
  at_work.join();
  for (const int f : fd) close(f);
  close(bell);
  EXPECT_EQ(answered, kWorkers * kRounds);
  EXPECT_EQ(sw.counters("a")->broadcasts, static_cast<std::uint64_t>(kRounds));
}

}  // namespace
}  // namespace ghostrank::switchml
