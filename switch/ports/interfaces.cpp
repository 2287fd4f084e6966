// Network interfaces as the ports of a switch: one packet socket each, frames in batches.
//
// The whole batch of arrived frames is switched before anything is sent, so results cost one system
// call per port and batch. Frames that a full interface does not take are dropped, as a switch
// does; SwitchML's workers then retransmit. A frame longer than its interface's MTU is dropped,
// too.
//
// The kernel takes the VLAN tag out of an arriving frame and gives it beside; here it is put back,
// so that a frame leaves as it came.
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <memory>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <system_error>

#include "switch/ports/fd.h"
#include "switch/ports/frame_ports.h"
#include "switch/wire/switchml.h"

namespace ghostrank::switchml {
namespace {

constexpr unsigned kBatch = 64;
constexpr std::size_t kMostFrame = 9216, kTag = 4, kRoom = kTag + kMostFrame;
constexpr std::size_t kTagAt = 12;  // behind both MAC addresses
constexpr int kSocketBuffer = 8 << 20;

// A classic BPF program that tells the kernel which of `shards` sockets gets a frame: SwitchML's
// slot modulo `shards`, 0 for other frames. Offsets count from the IPv4 header.
class Dealing {
 public:
  explicit Dealing(int shards)
      : code_{{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kEtherType),
               BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 0, 11),
               BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kIp),
               BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x45, 0, 9),
               BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kIp + 9),
               BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 7),
               BPF_STMT(BPF_LD | BPF_H | BPF_ABS, kIp + 22),
               BPF_STMT(BPF_ALU | BPF_AND | BPF_K, kUdpPortMask),
               BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kUdpPort, 0, 4),
               BPF_STMT(BPF_LD | BPF_H | BPF_ABS, kIp + 34),
               BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x7fff),
               BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, static_cast<std::uint32_t>(shards)),
               BPF_STMT(BPF_RET | BPF_A, 0), BPF_STMT(BPF_RET | BPF_K, 0)}} {}
  sock_fprog program() { return {static_cast<unsigned short>(code_.size()), code_.data()}; }

 private:
  static constexpr std::uint32_t kEtherType = SKF_AD_OFF + SKF_AD_PROTOCOL;
  static constexpr std::uint32_t kIp = SKF_NET_OFF;
  std::array<sock_filter, 14> code_;
};

class Interface {
 public:
  explicit Interface(const std::string& name)
      : name_(name),
        // Without a protocol: until it is bound it would hear all interfaces.
        fd_(socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    if (!fd_.is_open()) fail("a packet socket cannot be opened (it takes CAP_NET_RAW)");
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_ALL);
    address.sll_ifindex = if_nametoindex(name.c_str());
    if (address.sll_ifindex == 0) fail("there is no interface '" + name + "'");
    // Best effort: the kernel grants what its limits allow.
    setsockopt(fd(), SOL_SOCKET, SO_RCVBUF, &kSocketBuffer, sizeof kSocketBuffer);
    setsockopt(fd(), SOL_SOCKET, SO_SNDBUF, &kSocketBuffer, sizeof kSocketBuffer);
    const int yes = 1;
    setsockopt(fd(), SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof yes);
    setsockopt(fd(), SOL_PACKET, PACKET_AUXDATA, &yes, sizeof yes);
    packet_mreq promiscuous{};
    promiscuous.mr_ifindex = address.sll_ifindex;
    promiscuous.mr_type = PACKET_MR_PROMISC;
    setsockopt(fd(), SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous);
    if (bind(fd(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      fail("interface '" + name + "' cannot be bound");
    for (unsigned i = 0; i < kBatch; ++i) {
      point(in_, i, kTag, kMostFrame);
      point(out_, i, 0, 0);
    }
  }
  int fd() const { return fd_.get(); }

  // Joins the sockets that share the frames of this interface. `group` identifies them; the first
  // one passes a value below 0 and sets it.
  void share(int shards, int& group) {
    const bool first = group < 0;
    const int type = PACKET_FANOUT_CBPF | (first ? PACKET_FANOUT_FLAG_UNIQUEID : 0);
    int wanted = (first ? 0 : group) | type << 16;
    if (setsockopt(fd(), SOL_PACKET, PACKET_FANOUT, &wanted, sizeof wanted) != 0)
      fail("packets cannot be shared among cores");
    if (!first) return;
    socklen_t size = sizeof wanted;
    Dealing dealing(shards);
    const sock_fprog program = dealing.program();
    if (getsockopt(fd(), SOL_PACKET, PACKET_FANOUT, &wanted, &size) != 0 ||
        setsockopt(fd(), SOL_PACKET, PACKET_FANOUT_DATA, &program, sizeof program) != 0)
      fail("packets cannot be dealt out by slot");
    group = wanted & 0xffff;
  }

  // Receives at most a batch; returns how many frames. Throws std::system_error if the interface is
  // gone; one that is only down may come up again.
  unsigned receive() {
    for (unsigned i = 0; i < kBatch; ++i) {
      in_.messages[i].msg_hdr.msg_control = beside_[i].bytes.data();
      in_.messages[i].msg_hdr.msg_controllen = beside_[i].bytes.size();
    }
    const int n = recvmmsg(fd(), in_.messages.data(), kBatch, MSG_DONTWAIT, nullptr);
    // The kernel reports going down once, ahead of the frames that arrived before, and does not
    // report removal: after that, call is_gone() whenever no frame is there.
    if (n < 0 && errno == ENETDOWN) was_down_ = true;
    if (n < 0 && was_down_ && is_gone())
      throw std::system_error(ENODEV, std::generic_category(), "interface '" + name_ + "' is gone");
    return n < 0 ? 0 : static_cast<unsigned>(n);
  }
  // A frame of the last batch; asked for once.
  std::span<const std::byte> frame(unsigned i) {
    std::byte* const at = in_.bytes.get() + i * kRoom;
    const std::size_t bytes = in_.messages[i].msg_len;
    const tpacket_auxdata facts = facts_of(in_.messages[i].msg_hdr);
    if ((facts.tp_status & TP_STATUS_VLAN_VALID) == 0 || bytes < kTagAt) return {at + kTag, bytes};
    std::memmove(at, at + kTag, kTagAt);
    const bool named = (facts.tp_status & TP_STATUS_VLAN_TPID_VALID) != 0;
    store16(at + kTagAt, named ? facts.tp_vlan_tpid : std::uint16_t{ETH_P_8021Q});
    store16(at + kTagAt + 2, facts.tp_vlan_tci);
    return {at, kTag + bytes};
  }

  std::byte* room(std::size_t bytes) {
    if (waiting_ == kBatch) flush();
    out_.vectors[waiting_].iov_len = bytes;
    return out_.bytes.get() + waiting_++ * kRoom;
  }
  void flush() {
    for (unsigned sent = 0; sent < waiting_;) {
      const int n = sendmmsg(fd(), out_.messages.data() + sent, waiting_ - sent, MSG_DONTWAIT);
      if (n <= 0 && errno == EMSGSIZE) {
        ++sent;
      } else if (n <= 0 && errno != EINTR) {
        if (errno == ENETDOWN || errno == ENXIO) was_down_ = true;  // receive() will not see it
        break;
      }
      if (n > 0) sent += n;
    }
    waiting_ = 0;
  }

 private:
  struct Batch {
    std::array<mmsghdr, kBatch> messages{};
    std::array<iovec, kBatch> vectors{};
    std::unique_ptr<std::byte[]> bytes = std::make_unique<std::byte[]>(kBatch * kRoom);
  };
  struct alignas(cmsghdr) Beside {
    std::array<std::byte, CMSG_SPACE(sizeof(tpacket_auxdata))> bytes;
  };
  static void point(Batch& batch, unsigned i, std::size_t at, std::size_t bytes) {
    batch.vectors[i] = {batch.bytes.get() + i * kRoom + at, bytes};
    batch.messages[i].msg_hdr.msg_iov = &batch.vectors[i];
    batch.messages[i].msg_hdr.msg_iovlen = 1;
  }
  static tpacket_auxdata facts_of(msghdr& message) {
    tpacket_auxdata facts{};
    const cmsghdr* const beside = CMSG_FIRSTHDR(&message);
    if (beside != nullptr && beside->cmsg_level == SOL_PACKET &&
        beside->cmsg_type == PACKET_AUXDATA)
      std::memcpy(&facts, CMSG_DATA(beside), sizeof facts);
    return facts;
  }
  bool is_gone() const {
    sockaddr_ll address{};
    socklen_t size = sizeof address;
    return getsockname(fd(), reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
           address.sll_ifindex <= 0;
  }
  [[noreturn]] void fail(const std::string& what) {
    throw std::system_error(errno, std::generic_category(), what);
  }

  std::string name_;
  Fd fd_;
  Batch in_, out_;
  std::array<Beside, kBatch> beside_{};  // what the kernel says of each frame of in_
  unsigned waiting_ = 0;
  bool was_down_ = false;
};

class Interfaces final : public FramePorts {
 public:
  explicit Interfaces(const std::vector<PortName>& names) {
    for (const PortName& name : names)
      ports_.push_back(std::make_unique<Interface>(name.interface));
  }

  // `groups`: one per port, as Interface::share() uses them.
  void share(int shards, std::vector<int>& groups) {
    for (std::size_t p = 0; p < ports_.size(); ++p) ports_[p]->share(shards, groups[p]);
  }

  int count() const override { return static_cast<int>(ports_.size()); }
  void finish() override { flush(); }
  bool finished() const override { return false; }
  std::vector<int> descriptors() const override {
    std::vector<int> all;
    for (const auto& port : ports_) all.push_back(port->fd());
    return all;
  }

  // Takes a batch from one port, then one from the next; outgoing frames are sent between batches.
  bool next(Arrival& arrival) override {
    for (std::size_t tried = 0; at_ == arrived_; ++tried) {
      if (tried == ports_.size()) return false;
      flush();
      port_ = (port_ + 1) % ports_.size();
      at_ = 0;
      arrived_ = ports_[port_]->receive();
    }
    arrival = {static_cast<int>(port_), ports_[port_]->frame(at_++)};
    return true;
  }

  std::byte* frame(int port, std::size_t bytes) override { return ports_[port]->room(bytes); }

  void flush() override {
    for (auto& port : ports_) port->flush();
  }

 private:
  std::vector<std::unique_ptr<Interface>> ports_;
  std::size_t port_ = 0;           // port of the current batch
  unsigned at_ = 0, arrived_ = 0;  // position in the current batch, and its size
};

}  // namespace

std::unique_ptr<FramePorts> open_interfaces(const std::vector<PortName>& ports) {
  return std::make_unique<Interfaces>(ports);
}

std::vector<std::unique_ptr<FramePorts>> open_interfaces(const std::vector<PortName>& ports,
                                                         int shards) {
  std::vector<int> groups(ports.size(), -1);
  std::vector<std::unique_ptr<FramePorts>> all;
  for (int s = 0; s < shards; ++s) {
    auto one = std::make_unique<Interfaces>(ports);
    one->share(shards, groups);
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace ghostrank::switchml
