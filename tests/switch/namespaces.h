// A network for tests of switches on interfaces: a namespace for the switch and one per worker,
// with a veth pair between them. Needs root.
#pragma once

#include <arpa/inet.h>
#include <cstdlib>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/switch/support.h"

namespace ghostrank::switchml {

inline constexpr int kWorkers = 4;

inline bool shell(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

// The switch's namespace and one per worker; the destructor removes all of them.
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

  // Runs `f` in a namespace; sockets that it opens stay there.
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

inline int packet_socket() {
  const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_IP));
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_IP);
  address.sll_ifindex = static_cast<int>(if_nametoindex("eth0"));
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return fd;
}

inline Bytes receive(int fd, int patience_ms = 5'000) {
  Bytes frame(2048);
  pollfd polled{fd, POLLIN, 0};
  if (poll(&polled, 1, patience_ms) <= 0) return {};
  const ssize_t n = read(fd, frame.data(), frame.size());
  frame.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
  return frame;
}

}  // namespace ghostrank::switchml
