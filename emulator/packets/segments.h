// Several datagrams of one size leave as one message, which the kernel cuts (UDP_SEGMENT, GSO): it
// passes the stack once. The last of them may be shorter.
#pragma once

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <netinet/udp.h>
#include <sys/socket.h>

namespace ghostrank::udp {

inline constexpr std::size_t kMostPayload = 65507;  // bytes of a datagram over IPv4
inline constexpr std::size_t kMostSegments = 64;    // that every kernel cuts

// How many of `left` datagrams, from the first on, can leave as one message. bytes_of(i) is the
// size of datagram i; 0: it goes elsewhere.
template <class BytesOf>
std::size_t segments_of_a_message(std::size_t left, const BytesOf& bytes_of) {
  const std::size_t size = bytes_of(0);
  std::size_t n = 1, bytes = size, last = size;
  while (n < left && n < kMostSegments && last == size) {
    last = bytes_of(n);
    bytes += last;
    if (last == 0 || last > size || bytes > kMostPayload) break;
    ++n;
  }
  return n;
}

// Tells the kernel the size of a message's datagrams; lives until the message is sent.
class SegmentSize {
 public:
  void tell(msghdr& message, std::size_t bytes) {
    message.msg_control = control_.data();
    message.msg_controllen = control_.size();
    cmsghdr* const control = CMSG_FIRSTHDR(&message);
    control->cmsg_level = SOL_UDP;
    control->cmsg_type = UDP_SEGMENT;
    control->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
    const auto segment = static_cast<std::uint16_t>(bytes);
    std::memcpy(CMSG_DATA(control), &segment, sizeof segment);
  }

 private:
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(std::uint16_t))> control_;
};

// Whether the kernel cuts messages of this socket; an interface may refuse all the same.
inline bool can_cut(int fd) {
  const int off = 0;
  return setsockopt(fd, SOL_UDP, UDP_SEGMENT, &off, sizeof off) == 0;
}

// Whether this error of a message of several datagrams means that its interface cannot cut it.
inline bool cannot_cut(int error) {
  return error == EIO || error == EINVAL || error == EMSGSIZE || error == EOPNOTSUPP;
}

}  // namespace ghostrank::udp
