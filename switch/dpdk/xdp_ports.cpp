#include "switch/dpdk/xdp_ports.h"

#include <algorithm>
#include <array>
#include <bpf/libbpf.h>
#include <cerrno>
#include <net/if.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <system_error>
#include <xdp/libxdp.h>

namespace ghostrank::dpdk {
namespace {

constexpr std::uint16_t kBatch = 32, kRing = 1024, kOnlyQueue = 0;
constexpr unsigned kBuffersOfPort = 6 * kRing;  // the driver's rings both ways, and our batches
constexpr unsigned kCached = 256;

std::string device_name(std::size_t port) { return "net_af_xdp" + std::to_string(port); }

[[noreturn]] void fail(int why, const std::string& what) {
  throw std::system_error(std::abs(why), std::generic_category(), what);
}

// One interface, with the frames that it received and those to be sent.
class XdpPort {
 public:
  XdpPort(std::size_t port, const std::string& interface, rte_mempool* buffers)
      : buffers_(buffers) {
    if (rte_eth_dev_get_port_by_name(device_name(port).c_str(), &id_) != 0)
      fail(ENODEV, "DPDK cannot open '" + interface + "' with AF_XDP");
    const rte_eth_conf nothing_special{};
    int status = rte_eth_dev_configure(id_, 1, 1, &nothing_special);
    if (status == 0)
      status = rte_eth_rx_queue_setup(id_, kOnlyQueue, kRing, SOCKET_ID_ANY, nullptr, buffers);
    if (status == 0)
      status = rte_eth_tx_queue_setup(id_, kOnlyQueue, kRing, SOCKET_ID_ANY, nullptr);
    if (status == 0) status = rte_eth_dev_start(id_);
    if (status == 0) status = rte_eth_promiscuous_enable(id_);
    if (status != 0) {
      rte_eth_dev_close(id_);
      fail(status, "AF_XDP does not start on '" + interface +
                       "' (it takes root, and an interface that can have an XDP program)");
    }
  }
  ~XdpPort() {
    rte_pktmbuf_free_bulk(in_.data() + at_, static_cast<unsigned>(arrived_ - at_));
    rte_eth_dev_stop(id_);
    rte_eth_dev_close(id_);  // removes its program from the interface
  }
  XdpPort(const XdpPort&) = delete;
  XdpPort& operator=(const XdpPort&) = delete;

  // The next frame of the batch; empty: none. Valid until the next call.
  std::span<const std::byte> next() {
    if (at_ > 0) rte_pktmbuf_free(in_[at_ - 1]);
    if (at_ == arrived_) {
      at_ = arrived_ = 0;
      return {};
    }
    const rte_mbuf* frame = in_[at_++];
    return {rte_pktmbuf_mtod(frame, const std::byte*), frame->data_len};
  }
  void receive() { arrived_ = rte_eth_rx_burst(id_, kOnlyQueue, in_.data(), kBatch); }

  // Room for an outgoing frame. Without a free buffer the frame is written but never sent.
  std::byte* room(std::size_t bytes) {
    if (waiting_ == kBatch) flush();
    rte_mbuf* frame = rte_pktmbuf_alloc(buffers_);
    if (frame == nullptr || rte_pktmbuf_tailroom(frame) < bytes) {
      rte_pktmbuf_free(frame);
      if (nowhere_.size() < bytes) nowhere_.resize(bytes);
      return nowhere_.data();
    }
    frame->data_len = static_cast<std::uint16_t>(bytes);
    frame->pkt_len = static_cast<std::uint32_t>(bytes);
    out_[waiting_++] = frame;
    return rte_pktmbuf_mtod(frame, std::byte*);
  }
  // Drops frames that a full interface does not take, as a switch does.
  void flush() {
    if (waiting_ == 0) return;
    const std::uint16_t sent = rte_eth_tx_burst(id_, kOnlyQueue, out_.data(), waiting_);
    rte_pktmbuf_free_bulk(out_.data() + sent, static_cast<unsigned>(waiting_ - sent));
    waiting_ = 0;
  }

 private:
  rte_mempool* buffers_;
  std::uint16_t id_ = 0;
  std::array<rte_mbuf*, kBatch> in_{}, out_{};
  std::uint16_t at_ = 0, arrived_ = 0, waiting_ = 0;
  std::vector<std::byte> nowhere_;
};

class XdpPorts final : public switchml::FramePorts {
 public:
  explicit XdpPorts(const std::vector<switchml::PortName>& names) {
    for (std::size_t p = 0; p < names.size(); ++p) {
      // One pool per interface, because the driver ties a pool's memory to one interface.
      rte_mempool* buffers =
          rte_pktmbuf_pool_create(("xdp" + std::to_string(p)).c_str(), kBuffersOfPort, kCached, 0,
                                  RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
      if (buffers == nullptr) fail(ENOMEM, "DPDK has no memory for '" + names[p].interface + "'");
      ports_.push_back(std::make_unique<XdpPort>(p, names[p].interface, buffers));
    }
  }

  int count() const override { return static_cast<int>(ports_.size()); }
  void finish() override { flush(); }
  bool finished() const override { return false; }
  std::vector<int> descriptors() const override { return {}; }

  // Takes a batch from one port, then one from the next; outgoing frames are sent between batches.
  bool next(switchml::Arrival& arrival) override {
    for (std::size_t tried = 0; tried <= ports_.size(); ++tried) {
      arrival = {static_cast<int>(port_), ports_[port_]->next()};
      if (!arrival.frame.empty()) return true;
      flush();
      port_ = (port_ + 1) % ports_.size();
      ports_[port_]->receive();
    }
    return false;
  }

  std::byte* frame(int port, std::size_t bytes) override { return ports_[port]->room(bytes); }
  void flush() override {
    for (auto& port : ports_) port->flush();
  }

 private:
  std::vector<std::unique_ptr<XdpPort>> ports_;
  std::size_t port_ = 0;  // port of the current batch
};

}  // namespace

std::vector<std::string> arguments_for_xdp(const std::vector<switchml::PortName>& ports) {
  libbpf_set_print(nullptr);  // both libraries would print what they try
  libxdp_set_print(nullptr);
  std::vector<std::string> words;
  for (std::size_t p = 0; p < ports.size(); ++p) {
    if (if_nametoindex(ports[p].interface.c_str()) == 0)
      fail(errno, "there is no interface '" + ports[p].interface + "'");
    words.push_back("--vdev=" + device_name(p) + ",iface=" + ports[p].interface);
  }
  return words;
}

std::unique_ptr<switchml::FramePorts> open_xdp(const std::vector<switchml::PortName>& ports) {
  return std::make_unique<XdpPorts>(ports);
}

}  // namespace ghostrank::dpdk
