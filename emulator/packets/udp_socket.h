// One UDP socket: a batch of datagrams to send, and buffers for arrivals. Private to udp*.
//
// Where the kernel supports it, several datagrams of one size to one address leave as one message
// that the kernel cuts (GSO), and several that follow each other arrive as one (GRO). Bounds:
// kBatch datagrams taken and not yet sent.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <sys/socket.h>
#include <vector>

#include "emulator/fabric/open.h"
#include "emulator/fabric/udp_address.h"
#include "emulator/packets/packets.h"
#include "emulator/packets/segments.h"
#include "switch/ports/fd.h"

namespace ghostrank::udp {

inline constexpr std::size_t kBatch = 64;     // datagrams to send
inline constexpr std::size_t kLandings = 32;  // pieces that one read of a socket takes

// Buffers for one read of a socket; the sockets of an owner share them.
class Landing {
 public:
  explicit Landing(std::size_t bytes);  // size of the largest piece

  // Gets the bytes of a piece, and the size of the datagrams that the kernel joined in it (0: it is
  // one).
  using Take = std::function<void(std::span<const std::byte>, std::size_t)>;
  // Calls take() for each arrived piece, with no bytes for a piece that was too long. Returns how
  // many pieces there were; 0: none, or `error` is set.
  std::size_t receive(int fd, int& error, const Take& take);

 private:
  struct alignas(cmsghdr) Control {
    std::array<char, CMSG_SPACE(sizeof(int))> bytes;
  };
  std::size_t bytes_;
  std::vector<std::byte> memory_;
  std::vector<mmsghdr> messages_;
  std::vector<iovec> iovecs_;
  std::vector<Control> controls_;
};

class Socket {
 public:
  // Binds to the address and a port that the kernel chooses, but none of SwitchML's. Throws
  // Error(environment).
  Socket(const EndpointBinding& binding, std::uint32_t mtu);

  int fd() const { return fd_.get(); }
  const std::string& address() const { return address_; }
  std::uint64_t most_bytes() const { return most_bytes_; }
  bool joins_arrivals() const { return gro_; }

  bool full() const { return count_ == kBatch; }
  bool empty() const { return count_ == 0; }
  void put(const Address& to, Message&& datagram);  // requires !full()

  enum class Sent : std::uint8_t { well, no_room, failed };
  // Sends as much as the kernel takes.
  Sent flush(PacketStats& stats);
  // Returns the errno of the last failed send; 0: none failed.
  int error() const { return error_; }

  std::optional<std::uint32_t> dropped() const;  // by the kernel, since it was opened

 private:
  struct Slot {
    const Address* to = nullptr;
    Message datagram;
    std::size_t bytes() const { return sizeof(Header) + datagram.header.bytes; }
  };

  void set_up(const Address& wanted, const std::string& where);
  std::size_t describe(std::size_t first);
  std::size_t joined_from(std::size_t first) const;
  Sent go_on_after(int error, std::size_t datagrams, PacketStats& stats);
  void forget(std::size_t datagrams);

  void count_sent(std::size_t first, std::size_t datagrams);

  Fd fd_;
  std::shared_ptr<SendCap> cap_;  // null: none
  std::string address_;
  std::uint64_t most_bytes_ = 0;
  bool gso_ = false, gro_ = false;
  std::array<Slot, kBatch> slots_;
  std::size_t count_ = 0;
  std::array<mmsghdr, kBatch> messages_{};
  std::array<iovec, 2 * kBatch> parts_{};
  std::array<SegmentSize, kBatch> sizes_{};
  std::array<std::size_t, kBatch> joined_{};  // datagrams joined in each message
  int error_ = 0;
};

}  // namespace ghostrank::udp
