#include "emulator/fabric/datagrams.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "emulator/common/monotonic.h"
#include "emulator/common/ready_sockets.h"
#include "emulator/common/require_fd.h"
#include "emulator/fabric/reliable.h"
#include "emulator/fabric/udp_address.h"
#include "emulator/host/network_namespace.h"
#include "profiles/error.h"

namespace ghostrank {
namespace {

using std::chrono::nanoseconds;

constexpr std::size_t kBatch = 32;                // datagrams of one system call
constexpr int kBufferBytes = 4 << 20;             // asked of the kernel, which may give less
constexpr std::chrono::microseconds kRetry{500};  // after the kernel had no room

struct Head {
  std::uint64_t nonce = 0;
  std::uint32_t flow = 0, number = 0, awaited = 0;
  std::uint8_t flags = 0, unused[3] = {};
  std::uint64_t come = 0;
};
static_assert(sizeof(Head) == 32);
constexpr std::uint8_t kFirst = 1, kPacket = 2;

class Datagrams final : public NetworkFabric {
 public:
  explicit Datagrams(const FabricOptions& options)
      : options_(options),
        scratch_(options.mtu),
        epoll_(require_fd(epoll_create1(EPOLL_CLOEXEC))),
        wake_fd_(require_fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC))) {
    for (const EndpointBinding& binding : options.endpoints) open_socket(binding);
    listen_to(wake_fd_.get(), kWake);
    for (Landing& l : landings_) l.bytes.resize(options.mtu);
  }

  const std::string& provider() const override { return provider_; }
  const std::string& transport() const override { return transport_; }
  std::string address(int endpoint) const override {
    return addresses_[static_cast<std::size_t>(endpoint)];
  }
  void connect(const std::vector<FabricFlow>& flows) override {
    for (const FabricFlow& flow : flows) {
      const auto to = udp::Address::from(flow.address);
      flows_.push_back(std::make_unique<Flow>(
          Flow{sockets_[static_cast<std::size_t>(flow.endpoint)].get(),
               options_.endpoints[static_cast<std::size_t>(flow.endpoint)].cap.get(), to,
               flow.their_index, ReliableSender(options_.mtu - to.ip_and_udp() - sizeof(Head)),
               ReliableReceiver(options_.keep_payload), flow.name}));
    }
  }

  bool try_send(int flow, Message& message) override {
    Flow& f = *flows_[static_cast<std::size_t>(flow)];
    if (f.sender.full() || !failure_.empty()) return false;
    message.header.nonce = options_.nonce;
    ++stats_.messages_sent;
    stats_.bytes_sent += message.header.bytes;
    stats_.bytes_waiting += message.header.bytes;
    f.sender.put(std::move(message));
    pump(f);
    return true;
  }

  int poll(std::vector<Message>& arrived) override {
    const std::size_t before = arrived.size();
    for_ready_sockets(epoll_.get(), [&](std::uint64_t socket) {
      if (socket < kWake) receive(static_cast<int>(socket), arrived);
    });
    const std::int64_t now = monotonic_ns();
    for (const auto& f : flows_) {
      if (!f->sender.empty()) {
        f->sender.time_out(now);
        pump(*f);
      }
      if (f->owes) send_head(*f);
    }
    for (std::size_t m = before; m < arrived.size(); ++m) {
      ++stats_.messages_received;
      stats_.bytes_received += arrived[m].header.bytes;
    }
    return static_cast<int>(arrived.size() - before);
  }

  // Also ends when a packet counts as lost, because poll() then sends it again.
  void wait(nanoseconds timeout, nanoseconds spin) override {
    const std::int64_t now = monotonic_ns();
    for (const auto& f : flows_) {
      if (f->blocked || f->owes) timeout = std::min<nanoseconds>(timeout, kRetry);
      if (const auto deadline = f->sender.deadline_ns())
        timeout = std::min(timeout, nanoseconds(std::max<std::int64_t>(0, *deadline - now)));
    }
    const std::int64_t spin_until = now + std::min(timeout, spin).count();
    while (monotonic_ns() < spin_until)
      if (is_ready(0)) return;
    if (timeout > spin) is_ready((timeout - spin).count());
  }
  void watch(int descriptor) override { listen_to(descriptor, kWatched); }
  void wake() override {
    if (!woken_.exchange(true, std::memory_order_release)) eventfd_write(wake_fd_.get(), 1);
  }
  bool idle() const override {
    return std::all_of(flows_.begin(), flows_.end(),
                       [](const auto& f) { return f->sender.empty(); });
  }
  const std::string& failure() const override { return failure_; }
  FabricStats stats() const override { return stats_; }

 private:
  static constexpr std::uint64_t kWake = UINT64_MAX - 1, kWatched = UINT64_MAX;

  struct Flow {
    const Fd* socket = nullptr;
    SendCap* cap = nullptr;
    udp::Address to;
    std::uint32_t there = 0;  // its number at the other end
    ReliableSender sender;
    ReliableReceiver receiver;
    std::string name;      // of the other end, for errors
    bool owes = false;     // an acknowledgement; after poll(): the kernel had no room for it
    bool blocked = false;  // the kernel had no room, or the cap was closed
  };
  struct Landing {
    std::vector<std::byte> bytes;
  };

  void open_socket(const EndpointBinding& binding) {
    const InNamespace inside(binding.network_namespace);
    std::vector<Fd> passed_over;  // open until the end, so that the kernel chooses other ports
    udp::Address bound;
    Fd socket = bound_socket(binding, bound);
    while (bound.has_port_of_switches()) {
      passed_over.push_back(std::move(socket));
      socket = bound_socket(binding, bound);
    }
    addresses_.push_back(bound.text());
    listen_to(socket.get(), sockets_.size());
    sockets_.push_back(std::make_unique<Fd>(std::move(socket)));
  }

  static Fd bound_socket(const EndpointBinding& binding, udp::Address& bound) {
    const udp::Address here = udp::Address::from(binding.address + " 0");
    Fd socket =
        require_fd(::socket(here.bytes.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    for (const int option : {SO_RCVBUF, SO_SNDBUF})
      setsockopt(socket.get(), SOL_SOCKET, option, &kBufferBytes, sizeof kBufferBytes);
    here.forbid_fragments(socket.get());  // the job sets the MTU
    here.mark(socket.get(), binding.dscp);
    bound.size = sizeof bound.bytes;
    if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&here.bytes), here.size) != 0 ||
        getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound.bytes), &bound.size) != 0)
      throw Error("UDP cannot use the address " + binding.address + ": " + std::strerror(errno) +
                      "; name one of this machine with fabric.bind",
                  ErrorKind::environment);
    return socket;
  }

  void listen_to(int fd, std::uint64_t name) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = name;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
      throw Error(std::string("epoll_ctl: ") + std::strerror(errno), ErrorKind::environment);
  }

  // Whether a descriptor becomes readable within `ns`.
  bool is_ready(std::int64_t ns) {
    pollfd fd{epoll_.get(), POLLIN, 0};
    const timespec limit{ns / 1'000'000'000, ns % 1'000'000'000};
    if (ppoll(&fd, 1, &limit, nullptr) <= 0) return false;
    if (woken_.exchange(false, std::memory_order_acquire)) {
      eventfd_t count = 0;
      eventfd_read(wake_fd_.get(), &count);
    }
    return true;
  }

  Head head_of(const Flow& f) const {
    const Acknowledgement ack = f.receiver.acknowledgement();
    return {options_.nonce, f.there, 0, ack.awaited, 0, {}, ack.come};
  }

  // Sends the due packets, until the window or the kernel is full.
  void pump(Flow& f) {
    f.blocked = false;
    while (const auto packet = f.sender.due()) {
      if (f.cap && !f.cap->is_open(monotonic_ns())) {
        f.blocked = true;
        return;
      }
      Head head = head_of(f);
      head.number = packet->number;
      head.flags = static_cast<std::uint8_t>(kPacket | (packet->header ? kFirst : 0));
      std::array<iovec, 3> parts{{{&head, sizeof head}, {}, {}}};
      std::size_t count = 1;
      if (packet->header) parts[count++] = {const_cast<Header*>(packet->header), sizeof(Header)};
      const std::byte* bytes = packet->payload ? packet->payload : scratch_.data();
      if (packet->bytes > 0) parts[count++] = {const_cast<std::byte*>(bytes), packet->bytes};
      if (!send(f, parts.data(), count)) {
        f.blocked = true;
        return;
      }
      stats_.moved += !packet->again;  // sending again is no progress
      f.sender.left(monotonic_ns());
    }
  }

  void send_head(Flow& f) {
    Head head = head_of(f);
    iovec part{&head, sizeof head};
    send(f, &part, 1);
  }

  // False: the kernel has no room. A packet that it refuses counts as lost; one that can never be
  // sent sets failure_.
  bool send(Flow& f, iovec* parts, std::size_t count) {
    msghdr message{};
    message.msg_name = &f.to.bytes;
    message.msg_namelen = f.to.size;
    message.msg_iov = parts;
    message.msg_iovlen = count;
    if (sendmsg(f.socket->get(), &message, MSG_DONTWAIT) < 0) {
      if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM || errno == EINTR) {
        ++stats_.again;
        return false;
      }
      if (errno == EMSGSIZE || errno == EINVAL) failure_ = cannot_be_sent(f, message, errno);
    }
    if (f.cap) {
      std::size_t bytes = 0;
      for (std::size_t i = 0; i < count; ++i) bytes += parts[i].iov_len;
      f.cap->sent(bytes, 1, monotonic_ns());
    }
    f.owes = false;  // its head acknowledges
    return true;
  }

  std::string cannot_be_sent(const Flow& f, const msghdr& message, int error) const {
    std::size_t bytes = f.to.ip_and_udp();
    for (std::size_t i = 0; i < message.msg_iovlen; ++i) bytes += message.msg_iov[i].iov_len;
    const std::string mtu = std::to_string(options_.mtu), address = f.to.text();
    return "a packet of " + std::to_string(bytes) + " bytes cannot be sent to " + f.name + " (" +
           address.substr(0, address.find(' ')) + "): " + std::strerror(error) +
           "; set fabric.packets.mtu (" + mtu +
           ") to what every interface and switch between them carries (ip link shows it), or raise "
           "theirs (ip link set DEVICE mtu " +
           mtu + ")";
  }

  void receive(int socket, std::vector<Message>& arrived) {
    std::array<mmsghdr, kBatch> messages{};
    std::array<iovec, kBatch> parts{};
    for (std::size_t i = 0; i < kBatch; ++i) {
      parts[i] = {landings_[i].bytes.data(), landings_[i].bytes.size()};
      messages[i].msg_hdr.msg_iov = &parts[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
    const int count = recvmmsg(sockets_[static_cast<std::size_t>(socket)]->get(), messages.data(),
                               kBatch, MSG_DONTWAIT, nullptr);
    for (int i = 0; i < count; ++i)
      take({landings_[static_cast<std::size_t>(i)].bytes.data(), messages[i].msg_len}, arrived);
  }

  void take(std::span<const std::byte> bytes, std::vector<Message>& arrived) {
    Head head;
    if (bytes.size() >= sizeof head)
      std::memcpy(static_cast<void*>(&head), bytes.data(), sizeof head);
    if (bytes.size() < sizeof head || head.nonce != options_.nonce || head.flow >= flows_.size()) {
      ++stats_.strays;
      return;
    }
    Flow& f = *flows_[head.flow];
    const std::uint64_t waited = f.sender.bytes();
    stats_.moved += f.sender.acknowledge({head.awaited, head.come}, monotonic_ns());
    stats_.bytes_waiting -= waited - f.sender.bytes();
    if ((head.flags & kPacket) == 0) return;
    f.owes = true;
    const std::uint64_t before = f.receiver.taken();
    if (!f.receiver.take(head.number, (head.flags & kFirst) != 0, bytes.subspan(sizeof head),
                         arrived))
      ++stats_.strays;
    stats_.moved += f.receiver.taken() - before;
  }

  const FabricOptions options_;
  const std::vector<std::byte> scratch_;  // the bytes of synthetic payloads
  const std::string provider_ = "udp", transport_ = "udp";
  const Fd epoll_, wake_fd_;
  std::atomic<bool> woken_{false};
  std::vector<std::unique_ptr<Fd>> sockets_;
  std::vector<std::string> addresses_;
  std::vector<std::unique_ptr<Flow>> flows_;
  std::array<Landing, kBatch> landings_;
  FabricStats stats_;
  std::string failure_;
};

}  // namespace

std::unique_ptr<NetworkFabric> open_datagram_fabric(const FabricOptions& options) {
  return std::make_unique<Datagrams>(options);
}

double datagram_stream_bps(const SendCap& cap, std::uint32_t mtu) {
  constexpr std::uint32_t kHead = sizeof(Head), kIpAndUdp = 40 + 8;
  const std::uint32_t bytes = mtu - kIpAndUdp;
  return cap.datagrams_bps(bytes, bytes - kHead, kHead);
}

}  // namespace ghostrank
