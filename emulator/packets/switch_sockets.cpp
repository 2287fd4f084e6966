#include "emulator/packets/switch_sockets.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "emulator/common/monotonic.h"
#include "emulator/common/ready_sockets.h"
#include "emulator/common/require_fd.h"
#include "emulator/fabric/udp_address.h"
#include "emulator/host/network_namespace.h"
#include "emulator/packets/segments.h"
#include "profiles/error.h"
#include "profiles/job/key_error.h"

namespace ghostrank {
namespace {

constexpr std::size_t kBatch = 64;     // datagrams of one system call
constexpr int kBufferBytes = 4 << 20;  // asked of the kernel, which may give less
constexpr std::size_t kIpAndUdp = 28;

sockaddr_in ipv4(const std::string& address, std::uint16_t port, const char* what) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  if (inet_pton(AF_INET, address.c_str(), &to.sin_addr) != 1)
    throw Error(std::string(what) + " is '" + address +
                    "', and a switch is reached over IPv4 only; name an address such as 10.0.0.1",
                ErrorKind::environment);
  return to;
}

// One member's socket with the datagrams that wait to be sent.
class Member {
 public:
  explicit Member(const SwitchSocket& wanted)
      : cap_(wanted.binding.cap), arrivals_(wanted.arrivals) {
    const InNamespace inside(wanted.binding.network_namespace);
    fd_ = require_fd(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    for (const int option : {SO_RCVBUF, SO_SNDBUF})
      setsockopt(fd_.get(), SOL_SOCKET, option, &kBufferBytes, sizeof kBufferBytes);
    const int force = IP_PMTUDISC_DO, on = 1;
    setsockopt(fd_.get(), IPPROTO_IP, IP_MTU_DISCOVER, &force, sizeof force);
    setsockopt(fd_.get(), SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof on);
    if (wanted.binding.dscp >= 0)
      udp::Address::from(wanted.binding.address).mark(fd_.get(), wanted.binding.dscp);
    if (!wanted.device.empty() &&
        setsockopt(fd_.get(), SOL_SOCKET, SO_BINDTODEVICE, wanted.device.c_str(),
                   static_cast<socklen_t>(wanted.device.size())) != 0)
      throw Error("a socket cannot be bound to " + wanted.device + ": " + std::strerror(errno) +
                      "; run as root or with CAP_NET_RAW",
                  ErrorKind::environment);
    const sockaddr_in here = ipv4(wanted.binding.address, wanted.port, "a rank's address");
    const sockaddr_in there = ipv4(wanted.switch_address, wanted.switch_port, "switch.address");
    if (bind(fd_.get(), reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0)
      throw Error("UDP port " + std::to_string(wanted.port) + " of " + wanted.binding.address +
                      ", to which the switch sends, cannot be used: " + std::strerror(errno) +
                      "; free it, or set switch.worker_port",
                  ErrorKind::environment);
    // Connected, so that the kernel drops packets from other senders.
    if (connect(fd_.get(), reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0)
      throw KeyError("switch.address",
                     "switch.address: " + wanted.switch_address + " cannot be reached from " +
                         wanted.binding.address + ": " + std::strerror(errno) +
                         "; give the switch an address in the network of the ranks",
                     ErrorKind::environment);
    cuts_ = udp::can_cut(fd());
  }

  int fd() const { return fd_.get(); }
  const Header& arrivals() const { return arrivals_; }
  bool full() const { return count_ == kBatch; }
  bool empty() const { return count_ == 0; }
  void put(Message&& datagram) { waiting_[count_++] = std::move(datagram); }

  // Sends what the kernel takes; returns errno of a failure for good, 0 otherwise.
  int flush(PacketStats& stats) {
    Outgoing out;
    std::size_t sent = 0;
    int failed = 0;
    while (sent < count_ && failed == 0) {
      if (cap_ && !cap_->is_open(monotonic_ns())) break;
      const std::size_t messages = describe(sent, out);
      const int n =
          sendmmsg(fd(), out.messages.data(), static_cast<unsigned>(messages), MSG_DONTWAIT);
      if (n > 0) {
        for (int m = 0; m < n; ++m) {
          if (cap_) count_sent(sent, out.datagrams[m]);
          stats.sent += out.datagrams[m];
          sent += out.datagrams[m];
        }
      } else if (n == 0 || errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM) {
        ++stats.again;
        break;
      } else if (out.datagrams[0] > 1 && udp::cannot_cut(errno)) {
        cuts_ = false;  // from now on each leaves alone
      } else if (errno == ECONNREFUSED || errno == EPERM || errno == ENETDOWN ||
                 errno == ENETUNREACH || errno == EHOSTUNREACH || errno == EHOSTDOWN) {
        stats.refused += out.datagrams[0];  // lost; the scheme sends them again
        sent += out.datagrams[0];
      } else if (errno != EINTR) {
        failed = errno;
      }
    }
    std::move(waiting_.begin() + static_cast<std::ptrdiff_t>(sent),
              waiting_.begin() + static_cast<std::ptrdiff_t>(count_), waiting_.begin());
    count_ -= sent;
    for (std::size_t i = count_; i < count_ + sent; ++i) waiting_[i] = {};
    return failed;
  }

 private:
  // Messages for the kernel, each of one datagram or of several of one size, which it cuts.
  struct Outgoing {
    std::array<mmsghdr, kBatch> messages;
    std::array<iovec, kBatch> parts;
    std::array<udp::SegmentSize, kBatch> sizes;
    std::array<std::size_t, kBatch> datagrams;
  };

  // Describes all datagrams from `first` on. Returns how many messages they are.
  std::size_t describe(std::size_t first, Outgoing& out) const {
    std::size_t messages = 0, part = 0;
    for (; first < count_; ++messages) {
      const auto bytes_of = [&](std::size_t i) { return waiting_[first + i].header.bytes; };
      const std::size_t n = cuts_ ? udp::segments_of_a_message(count_ - first, bytes_of) : 1;
      msghdr& message = out.messages[messages].msg_hdr;
      message = {};
      message.msg_iov = &out.parts[part];
      message.msg_iovlen = n;
      for (std::size_t i = 0; i < n; ++i, ++part)
        out.parts[part] = {waiting_[first + i].payload.get(), bytes_of(i)};
      if (n > 1) out.sizes[messages].tell(message, bytes_of(0));
      out.datagrams[messages] = n;
      first += n;
    }
    return messages;
  }

  void count_sent(std::size_t first, std::size_t datagrams) {
    std::size_t bytes = 0;
    for (std::size_t i = first; i < first + datagrams; ++i) bytes += waiting_[i].header.bytes;
    cap_->sent(bytes, datagrams, monotonic_ns());
  }

  Fd fd_;
  std::shared_ptr<SendCap> cap_;  // null: none
  bool cuts_ = false;
  const Header arrivals_;
  std::array<Message, kBatch> waiting_;
  std::size_t count_ = 0;
};

class SwitchSockets final : public Packets {
 public:
  SwitchSockets(const std::vector<SwitchSocket>& wanted, std::uint32_t mtu)
      : most_bytes_(mtu - kIpAndUdp),
        epoll_(require_fd(epoll_create1(EPOLL_CLOEXEC))),
        landing_(kBatch * (most_bytes_ + 1)) {
    for (const SwitchSocket& one : wanted) {
      members_.push_back(std::make_unique<Member>(one));
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.u64 = members_.size() - 1;
      require_ok(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, members_.back()->fd(), &event));
    }
    for (std::size_t i = 0; i < kBatch; ++i)
      parts_[i] = {landing_.data() + i * (most_bytes_ + 1), most_bytes_ + 1};
  }

  bool try_send(int flow, Message& datagram) override {
    Member& member = *members_[static_cast<std::size_t>(flow)];
    if (member.full()) flush(member);
    if (member.full() || !failure_.empty()) return false;
    if (member.empty()) pending_.push_back(&member);
    member.put(std::move(datagram));
    return true;
  }
  void flush() override {
    std::erase_if(pending_, [&](Member* member) {
      if (!member->empty() && failure_.empty()) flush(*member);
      return member->empty();
    });
  }
  int poll(std::vector<Message>& arrived) override {
    const std::size_t before = arrived.size();
    for_ready_sockets(epoll_.get(),
                      [&](std::uint64_t member) { receive(*members_[member], arrived); });
    stats_.received += arrived.size() - before;
    return static_cast<int>(arrived.size() - before);
  }
  int wait_fd() const override { return epoll_.get(); }
  bool idle() const override {
    return std::all_of(pending_.begin(), pending_.end(), [](Member* m) { return m->empty(); });
  }
  std::uint64_t most_bytes() const override { return most_bytes_; }
  const std::string& failure() const override { return failure_; }
  PacketStats stats() const override {
    PacketStats stats = stats_;
    stats.dropped = dropped_;
    return stats;
  }

 private:
  struct alignas(cmsghdr) Control {
    std::array<char, CMSG_SPACE(sizeof(std::uint32_t))> bytes;
  };

  static void require_ok(int result) {
    if (result != 0)
      throw Error(std::string("epoll_ctl: ") + std::strerror(errno), ErrorKind::environment);
  }

  void flush(Member& member) {
    if (const int error = member.flush(stats_); error != 0)
      failure_ = std::string("a packet to the switch cannot be sent: ") + std::strerror(error) +
                 (error == EMSGSIZE ? "; let switch.packet_elements fit the interfaces' MTU" : "");
  }

  void receive(Member& member, std::vector<Message>& arrived) {
    std::array<mmsghdr, kBatch> messages{};
    for (std::size_t i = 0; i < kBatch; ++i) {
      messages[i].msg_hdr.msg_iov = &parts_[i];
      messages[i].msg_hdr.msg_iovlen = 1;
      messages[i].msg_hdr.msg_control = controls_[i].bytes.data();
      messages[i].msg_hdr.msg_controllen = controls_[i].bytes.size();
    }
    const int count = recvmmsg(member.fd(), messages.data(), kBatch, MSG_DONTWAIT, nullptr);
    for (int i = 0; i < count; ++i) {
      note_drops(member, messages[i].msg_hdr);
      const std::size_t bytes = messages[i].msg_len;
      if (bytes > most_bytes_ || bytes == 0) {
        ++stats_.strays;
        continue;
      }
      Message& m = arrived.emplace_back(member.arrivals(), Payload(new std::byte[bytes]));
      m.header.bytes = bytes & kMostBytes;
      m.header.number = static_cast<std::uint16_t>(bytes);
      std::memcpy(m.payload.get(), parts_[i].iov_base, bytes);
    }
  }

  // The kernel counts the datagrams that it drops because a socket's buffer is full, and reports
  // the count with the socket's next datagram.
  void note_drops(const Member& member, msghdr& message) {
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
      if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SO_RXQ_OVFL) continue;
      std::uint32_t total = 0;
      std::memcpy(&total, CMSG_DATA(c), sizeof total);
      std::uint32_t& known = dropped_of_[&member];
      dropped_ += total - known;
      known = total;
    }
  }

  const std::size_t most_bytes_;
  Fd epoll_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<Member*> pending_;  // with datagrams to send
  std::vector<std::byte> landing_;
  std::array<iovec, kBatch> parts_{};
  std::array<Control, kBatch> controls_{};
  std::map<const Member*, std::uint32_t> dropped_of_;
  std::uint64_t dropped_ = 0;
  PacketStats stats_;
  std::string failure_;
};

}  // namespace

std::unique_ptr<Packets> open_switch_sockets(const std::vector<SwitchSocket>& sockets,
                                             std::uint32_t mtu) {
  return std::make_unique<SwitchSockets>(sockets, mtu);
}

}  // namespace ghostrank
