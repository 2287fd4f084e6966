#include "emulator/packets/udp_socket.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <utility>

#include "emulator/common/monotonic.h"
#include "emulator/host/network_namespace.h"
#include "profiles/error.h"
#include "switch/assert.h"

namespace ghostrank::udp {
namespace {

constexpr int kReceiveBuffer = 4 << 20;  // bytes; the kernel may grant fewer

// The bytes of synthetic payloads.
std::byte* scratch() {
  static std::array<std::byte, kMostPayload> bytes;
  return bytes.data();
}

[[noreturn]] void throw_unusable(const std::string& where, const std::string& what) {
  throw Error("packets of schemes cannot be sent from " + where + ": " + what + ": " +
                  std::strerror(errno) + "; choose another address with fabric.bind",
              ErrorKind::environment);
}

void set(int fd, int level, int name, int value) {
  setsockopt(fd, level, name, &value, sizeof value);
}

}  // namespace

// ---- Receiving

Landing::Landing(std::size_t bytes)
    : bytes_(bytes),
      memory_(kLandings * bytes),
      messages_(kLandings),
      iovecs_(kLandings),
      controls_(kLandings) {
  for (std::size_t i = 0; i < kLandings; ++i) {
    iovecs_[i] = {memory_.data() + i * bytes, bytes};
    messages_[i].msg_hdr.msg_iov = &iovecs_[i];
    messages_[i].msg_hdr.msg_iovlen = 1;
    messages_[i].msg_hdr.msg_control = controls_[i].bytes.data();
  }
}

std::size_t Landing::receive(int fd, int& error, const Take& take) {
  for (mmsghdr& m : messages_) m.msg_hdr.msg_controllen = sizeof(Control::bytes);
  const int count = recvmmsg(fd, messages_.data(), kLandings, MSG_DONTWAIT, nullptr);
  if (count < 0) {
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) error = errno;
    return 0;
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    msghdr& header = messages_[i].msg_hdr;
    int segment = 0;
    const cmsghdr* const control = CMSG_FIRSTHDR(&header);
    if (control && control->cmsg_level == SOL_UDP && control->cmsg_type == UDP_GRO)
      std::memcpy(&segment, CMSG_DATA(control), sizeof segment);
    const std::size_t bytes = header.msg_flags & MSG_TRUNC ? 0 : messages_[i].msg_len;
    take({memory_.data() + i * bytes_, bytes}, static_cast<std::size_t>(std::max(segment, 0)));
  }
  return count;
}

// ---- The socket

Socket::Socket(const EndpointBinding& binding, std::uint32_t mtu) : cap_(binding.cap) {
  std::string where = binding.address;
  if (!binding.network_namespace.empty())
    where += " in network namespace " + binding.network_namespace;
  const Address wanted = Address::from(binding.address);
  const int family = wanted.bytes.ss_family;
  most_bytes_ = std::min<std::uint64_t>(mtu - wanted.ip_and_udp(), kMostPayload) - sizeof(Header);
  const InNamespace inside(binding.network_namespace);
  std::vector<Fd> passed_over;  // open until the end, so that the kernel chooses other ports
  Address bound;
  do {
    if (fd_.is_open()) passed_over.push_back(std::move(fd_));
    fd_ = Fd(socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd_.is_open()) throw_unusable(where, "no socket");
    set_up(wanted, where);
    wanted.mark(fd(), binding.dscp);
    if (bind(fd(), reinterpret_cast<const sockaddr*>(&wanted.bytes), wanted.size) != 0)
      throw_unusable(where, "it cannot be bound");
    bound.size = sizeof bound.bytes;
    if (getsockname(fd(), reinterpret_cast<sockaddr*>(&bound.bytes), &bound.size) != 0)
      throw_unusable(where, "it does not tell its port");
  } while (bound.has_port_of_switches());
  address_ = bound.text();
}

// Sets don't-fragment and ignores routers' path MTU, because the job sets the MTU.
void Socket::set_up(const Address& wanted, const std::string& where) {
  if (!wanted.forbid_fragments(fd())) throw_unusable(where, "don't-fragment cannot be set");
  if (setsockopt(fd(), SOL_SOCKET, SO_RCVBUFFORCE, &kReceiveBuffer, sizeof kReceiveBuffer) != 0)
    set(fd(), SOL_SOCKET, SO_RCVBUF, kReceiveBuffer);
  const int on = 1;
  gso_ = can_cut(fd());
  gro_ = setsockopt(fd(), SOL_UDP, UDP_GRO, &on, sizeof on) == 0;
}

std::optional<std::uint32_t> Socket::dropped() const {
  std::array<std::uint32_t, SK_MEMINFO_VARS> info{};
  socklen_t size = sizeof info;
  if (getsockopt(fd(), SOL_SOCKET, SO_MEMINFO, info.data(), &size) != 0 ||
      size <= SK_MEMINFO_DROPS * sizeof info[0])
    return std::nullopt;
  return info[SK_MEMINFO_DROPS];
}

// ---- Sending

void Socket::put(const Address& to, Message&& datagram) {
  GHOSTRANK_ASSERT(!full());
  slots_[count_++] = {&to, std::move(datagram)};
}

// Returns how many datagrams from `first` on leave as one message.
std::size_t Socket::joined_from(std::size_t first) const {
  if (!gso_) return 1;
  return segments_of_a_message(count_ - first, [&](std::size_t i) {
    const Slot& one = slots_[first + i];
    return one.to == slots_[first].to ? one.bytes() : 0;
  });
}

// Describes all datagrams from `first` on as messages for the kernel. Returns how many messages.
std::size_t Socket::describe(std::size_t first) {
  std::size_t count = 0, parts = 0;
  while (first < count_) {
    mmsghdr& message = messages_[count];
    const std::size_t n = joined_[count] = joined_from(first);
    const Slot& head = slots_[first];
    message = {};
    message.msg_hdr.msg_name = const_cast<sockaddr_storage*>(&head.to->bytes);
    message.msg_hdr.msg_namelen = head.to->size;
    message.msg_hdr.msg_iov = &parts_[parts];
    for (std::size_t i = 0; i < n; ++i) {
      Message& d = slots_[first + i].datagram;
      parts_[parts++] = {&d.header, sizeof(Header)};
      parts_[parts++] = {d.payload ? d.payload.get() : scratch(), d.header.bytes};
    }
    message.msg_hdr.msg_iovlen = 2 * n;
    if (n > 1) sizes_[count].tell(message.msg_hdr, head.bytes());
    first += n;
    ++count;
  }
  return count;
}

Socket::Sent Socket::flush(PacketStats& stats) {
  std::size_t gone = 0;
  Sent sent = Sent::well;
  while (gone < count_ && sent == Sent::well) {
    if (cap_ && !cap_->is_open(monotonic_ns())) {
      sent = Sent::no_room;
      break;
    }
    const std::size_t messages = describe(gone);
    const int taken =
        sendmmsg(fd(), messages_.data(), static_cast<unsigned>(messages), MSG_DONTWAIT);
    if (taken > 0) {
      std::size_t datagrams = 0;
      for (int m = 0; m < taken; ++m) datagrams += joined_[m];
      stats.sent += datagrams;
      if (cap_) count_sent(gone, datagrams);
      gone += datagrams;
      continue;
    }
    const std::uint64_t refused = stats.refused;
    sent = go_on_after(taken < 0 ? errno : EAGAIN, joined_[0], stats);
    gone += stats.refused - refused;
  }
  forget(gone);
  return sent;
}

void Socket::count_sent(std::size_t first, std::size_t datagrams) {
  std::size_t bytes = 0;
  for (std::size_t i = first; i < first + datagrams; ++i) bytes += slots_[i].bytes();
  cap_->sent(bytes, datagrams, monotonic_ns());
}

// Handles that the kernel did not take the first message, of `datagrams` datagrams.
Socket::Sent Socket::go_on_after(int error, std::size_t datagrams, PacketStats& stats) {
  switch (error) {
    case EINTR:
      return Sent::well;
    case EAGAIN:
    case ENOBUFS:
    case ENOMEM:
      ++stats.again;
      return Sent::no_room;
    default:
      break;
  }
  error_ = error;
  if (datagrams > 1 && cannot_cut(error)) {  // from now on each leaves alone
    gso_ = false;
    return Sent::well;
  }
  switch (error) {
    case EPERM:  // a firewall, or its full connection table
    case EACCES:
    case EMSGSIZE:
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ECONNREFUSED:
      ++stats.refused;
      return Sent::well;
    default:
      return Sent::failed;
  }
}

void Socket::forget(std::size_t datagrams) {
  for (std::size_t i = 0; i < datagrams; ++i) slots_[i].datagram.payload.reset();
  std::move(slots_.begin() + static_cast<std::ptrdiff_t>(datagrams),
            slots_.begin() + static_cast<std::ptrdiff_t>(count_), slots_.begin());
  count_ -= datagrams;
}

}  // namespace ghostrank::udp
