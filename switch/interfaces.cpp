// A switch on network interfaces: a packet socket each, frames in batches.
//
// A batch of arrived frames is switched as a whole before anything is sent, so that a result for
// four workers is one system call per port. What a full interface does not take is dropped, as by a
// switch; SwitchML repeats.
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <memory>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>

#include "switch/live.h"

namespace ghostrank::switchml {
namespace {

constexpr unsigned kBatch = 64;
constexpr std::size_t kMostFrame = 9216;
constexpr int kSocketBuffer = 8 << 20;

class Interface {
 public:
  explicit Interface(const std::string& name)
      : fd_(socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_ALL))) {
    if (fd_ < 0) fail("a packet socket cannot be opened (it takes CAP_NET_RAW)");
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_ALL);
    address.sll_ifindex = static_cast<int>(if_nametoindex(name.c_str()));
    if (address.sll_ifindex == 0) fail("there is no interface '" + name + "'");
    // Best effort: the kernel grants what its limits allow.
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &kSocketBuffer, sizeof kSocketBuffer);
    setsockopt(fd_, SOL_SOCKET, SO_SNDBUF, &kSocketBuffer, sizeof kSocketBuffer);
    const int yes = 1;
    setsockopt(fd_, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof yes);
    packet_mreq promiscuous{};
    promiscuous.mr_ifindex = address.sll_ifindex;
    promiscuous.mr_type = PACKET_MR_PROMISC;
    setsockopt(fd_, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous);
    if (bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      fail("interface '" + name + "' cannot be bound");
    for (unsigned i = 0; i < kBatch; ++i) {
      point(in_, i, kMostFrame);
      point(out_, i, 0);
    }
  }
  ~Interface() {
    if (fd_ >= 0) close(fd_);
  }
  Interface(const Interface&) = delete;
  Interface& operator=(const Interface&) = delete;

  int fd() const { return fd_; }

  // What has arrived, at most a batch.
  unsigned receive() {
    const int n = recvmmsg(fd_, in_.messages.data(), kBatch, MSG_DONTWAIT, nullptr);
    return n < 0 ? 0 : static_cast<unsigned>(n);
  }
  std::span<const std::byte> frame(unsigned i) const {
    return {in_.bytes.get() + i * kMostFrame, in_.messages[i].msg_len};
  }

  std::byte* room(std::size_t bytes) {
    if (waiting_ == kBatch) flush();
    out_.vectors[waiting_].iov_len = bytes;
    return out_.bytes.get() + waiting_++ * kMostFrame;
  }
  void flush() {
    for (unsigned sent = 0; sent < waiting_;) {
      const int n = sendmmsg(fd_, out_.messages.data() + sent, waiting_ - sent, MSG_DONTWAIT);
      if (n <= 0 && errno != EINTR) break;
      if (n > 0) sent += static_cast<unsigned>(n);
    }
    waiting_ = 0;
  }

 private:
  struct Batch {
    std::array<mmsghdr, kBatch> messages{};
    std::array<iovec, kBatch> vectors{};
    std::unique_ptr<std::byte[]> bytes = std::make_unique<std::byte[]>(kBatch * kMostFrame);
  };
  static void point(Batch& batch, unsigned i, std::size_t bytes) {
    batch.vectors[i] = {batch.bytes.get() + i * kMostFrame, bytes};
    batch.messages[i].msg_hdr.msg_iov = &batch.vectors[i];
    batch.messages[i].msg_hdr.msg_iovlen = 1;
  }
  [[noreturn]] void fail(const std::string& what) {
    const int why = errno;
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
    throw std::system_error(why, std::generic_category(), what);
  }

  int fd_ = -1;
  Batch in_, out_;
  unsigned waiting_ = 0;
};

class InterfaceTransmitter final : public Transmitter {
 public:
  explicit InterfaceTransmitter(std::vector<std::unique_ptr<Interface>>& ports) : ports_(ports) {}
  std::byte* frame(int port, std::size_t bytes) override {
    return ports_[static_cast<std::size_t>(port)]->room(bytes);
  }

 private:
  std::vector<std::unique_ptr<Interface>>& ports_;
};

}  // namespace

void run_on_interfaces(CompiledSwitch& sw, const std::vector<PortName>& names,
                       const std::vector<Watch>& watches, const std::atomic<bool>& stop) {
  std::vector<std::unique_ptr<Interface>> ports;
  std::vector<pollfd> polled;
  for (const PortName& name : names) {
    ports.push_back(std::make_unique<Interface>(name.interface));
    polled.push_back({ports.back()->fd(), POLLIN, 0});
  }
  for (const Watch& watch : watches) polled.push_back({watch.fd, POLLIN, 0});
  InterfaceTransmitter out(ports);
  while (!stop) {
    if (poll(polled.data(), polled.size(), 100) <= 0) continue;
    for (std::size_t p = 0; p < ports.size(); ++p) {
      if ((polled[p].revents & POLLIN) == 0) continue;
      const unsigned n = ports[p]->receive();
      for (unsigned i = 0; i < n; ++i) sw.receive(static_cast<int>(p), ports[p]->frame(i), out);
    }
    for (auto& port : ports) port->flush();
    for (std::size_t w = 0; w < watches.size(); ++w) {
      if (polled[ports.size() + w].revents != 0) watches[w].ready();
    }
  }
}

}  // namespace ghostrank::switchml
