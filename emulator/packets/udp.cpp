#include "emulator/packets/udp.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <sys/epoll.h>
#include <utility>

#include "emulator/common/ready_sockets.h"
#include "emulator/common/require_fd.h"
#include "emulator/packets/datagram.h"
#include "emulator/packets/udp_socket.h"
#include "profiles/error.h"

namespace ghostrank {
namespace {

constexpr std::size_t kJoinedBytes = 65535;  // largest piece of joined datagrams
constexpr int kLooks = 4;  // successive reads of one socket; then the others follow

class Udp final : public UdpPackets {
 public:
  explicit Udp(const UdpOptions& options)
      : options_(options), epoll_(require_fd(epoll_create1(EPOLL_CLOEXEC))) {
    for (const EndpointBinding& binding : options.sockets) add(binding);
    bool joins = false;
    for (const auto& s : sockets_) {
      most_bytes_ = std::min(most_bytes_, s->most_bytes());
      joins |= s->joins_arrivals();
    }
    // One byte more than a datagram may have, so that a longer one shows.
    landing_.emplace(joins ? kJoinedBytes : std::size_t{options.mtu} + 1);
  }

  std::string address(int socket) const override { return at(socket).address(); }
  std::string trouble(int socket) const override {
    return at(socket).error() == 0 ? "" : std::strerror(at(socket).error());
  }

  void connect(const std::vector<PacketFlow>& flows) override {
    for (const PacketFlow& flow : flows) {
      auto [it, fresh] = addresses_.try_emplace(flow.address);
      if (fresh) it->second = udp::Address::from(flow.address);
      flows_.push_back({flow.socket, &it->second, flow.name + " (" + flow.address + ")"});
    }
  }

  bool try_send(int flow, Message& datagram) override {
    if (!failure_.empty()) return false;
    const auto f = static_cast<std::size_t>(flow);
    if (f >= flows_.size() || datagram.header.bytes > most_bytes_) {
      failure_ = "asked to send a packet of " + std::to_string(datagram.header.bytes) +
                 " bytes over flow " + std::to_string(flow) + " of " +
                 std::to_string(flows_.size()) + "; at most " + std::to_string(most_bytes_) +
                 " bytes fit fabric.packets.mtu";
      return false;
    }
    udp::Socket& socket = at(flows_[f].socket);
    if (socket.full()) flush(socket, flows_[f].name);
    if (socket.full() || !failure_.empty()) return false;
    datagram.header.nonce = options_.nonce;
    if (socket.empty()) pending_.push_back(flow);
    socket.put(*flows_[f].to, std::move(datagram));
    return true;
  }

  // `pending_` names each socket that has a batch by a flow that leaves from it, perhaps twice.
  void flush() override {
    std::erase_if(pending_, [&](int flow) {
      const Flow& f = flows_[static_cast<std::size_t>(flow)];
      udp::Socket& socket = at(f.socket);
      if (!socket.empty() && failure_.empty()) flush(socket, f.name);
      return socket.empty();
    });
  }

  int poll(std::vector<Message>& arrived) override {
    const std::size_t before = arrived.size();
    if (sockets_.size() == 1) {
      receive(*sockets_.front(), arrived);
    } else {
      for_ready_sockets(epoll_.get(),
                        [&](std::uint64_t socket) { receive(*sockets_[socket], arrived); });
    }
    const std::size_t count = arrived.size() - before;
    stats_.received += count;
    return static_cast<int>(count);
  }

  int wait_fd() const override { return epoll_.get(); }
  bool idle() const override {
    return std::all_of(pending_.begin(), pending_.end(), [&](int flow) {
      return at(flows_[static_cast<std::size_t>(flow)].socket).empty();
    });
  }
  std::uint64_t most_bytes() const override { return most_bytes_; }
  const std::string& failure() const override { return failure_; }

  PacketStats stats() const override {
    PacketStats stats = stats_;
    stats.dropped = 0;
    for (const auto& socket : sockets_) {
      const std::optional<std::uint32_t> dropped = socket->dropped();
      if (!dropped) stats.dropped.reset();
      if (stats.dropped) *stats.dropped += *dropped;
    }
    return stats;
  }

 private:
  struct Flow {
    int socket;
    const udp::Address* to;  // in addresses_; flows to one socket share it
    std::string name;
  };

  void add(const EndpointBinding& binding) {
    sockets_.push_back(std::make_unique<udp::Socket>(binding, options_.mtu));
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = sockets_.size() - 1;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, sockets_.back()->fd(), &event) != 0)
      throw Error(
          std::string("epoll_ctl: ") + std::strerror(errno) + "; raise fs.epoll.max_user_watches",
          ErrorKind::environment);
  }

  udp::Socket& at(int socket) const { return *sockets_.at(socket); }

  void flush(udp::Socket& socket, const std::string& name) {
    if (socket.flush(stats_) != udp::Socket::Sent::failed) return;
    failure_ = "sending packets to " + name + " failed: " + std::strerror(socket.error()) +
               "; check the interface of " + socket.address();
  }

  void receive(udp::Socket& socket, std::vector<Message>& arrived) {
    const auto take = [&](std::span<const std::byte> piece, std::size_t segment) {
      stats_.strays +=
          take_datagrams(piece, segment, options_.nonce, options_.keep_payload, arrived);
    };
    int error = 0;
    for (int look = 0; look < kLooks; ++look)
      if (landing_->receive(socket.fd(), error, take) < udp::kLandings) break;
    if (error != 0 && failure_.empty())
      failure_ = "receiving packets on " + socket.address() + " failed: " + std::strerror(error) +
                 "; check its interface";
  }

  const UdpOptions options_;
  const Fd epoll_;
  std::vector<std::unique_ptr<udp::Socket>> sockets_;
  std::optional<udp::Landing> landing_;
  std::map<std::string, udp::Address> addresses_;
  std::vector<Flow> flows_;
  std::vector<int> pending_;
  std::uint64_t most_bytes_ = udp::kMostPayload;
  std::string failure_;
  PacketStats stats_;
};

}  // namespace

std::unique_ptr<UdpPackets> UdpPackets::open(const UdpOptions& options) {
  return std::make_unique<Udp>(options);
}

}  // namespace ghostrank
