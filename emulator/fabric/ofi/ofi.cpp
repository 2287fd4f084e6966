// Sets the endpoints up: buffers, receives, flows. See ofi/endpoint.h.
#include "emulator/fabric/ofi/ofi.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include "emulator/fabric/ofi/endpoint.h"
#include "profiles/job/key_error.h"

namespace ghostrank::ofi {
namespace {

constexpr std::size_t kOutgoing = 256;
constexpr std::size_t kMaxSlots = 256;
// In verify mode each receive has a payload buffer of its own.
constexpr std::size_t kKeptReceives = 64;
constexpr std::size_t kFramedReceives = 64;  // each with a frame buffer; so few stay in the cache
constexpr std::size_t kFrames = 64;          // frames to send
constexpr std::size_t kLeastReceives = 4;    // per endpoint, however many endpoints there are

std::string transport_of(const std::string& provider) {
  const std::string core = provider.substr(0, provider.find(';'));
  if (core != "net" && core != "tcp" && core != "sockets") return provider;
  std::ifstream file("/proc/sys/net/ipv4/tcp_congestion_control");
  std::string control;
  file >> control;
  return control.empty() ? "tcp" : "tcp-" + control;
}

// Frames need three iovec entries per receive (header, frame, rest of the payload); returns 0, no
// frames, where the provider has fewer.
std::uint64_t frame_bytes_of(const OfiOptions& options, const fi_info& info) {
  return info.rx_attr->iov_limit >= 3 ? options.frame_bytes : 0;
}

// Provider sockets otherwise completes a send when the receiver's polling has taken the message. A
// process whose ranks have ended polls no more, so what it need not wait for, as credits, would
// never leave its sender.
std::uint64_t send_flags_of(const std::string& provider) {
  return FI_COMPLETION | (provider == "sockets" ? FI_INJECT_COMPLETE : 0);
}

// Returns how many receives to post on every endpoint.
std::size_t receives_of(const OfiOptions& options, const fi_info& info) {
  const std::size_t all = options.keep_payload                ? kKeptReceives
                          : frame_bytes_of(options, info) > 0 ? kFramedReceives
                                                              : kMaxSlots;
  return std::min(std::max(all / options.endpoints.size(), kLeastReceives), info.rx_attr->size);
}

}  // namespace

Endpoints::Endpoints(const OfiOptions& options, OfiOpened opened)
    : options_(options),
      recv_slots_(receives_of(options, *opened.domain.info) * opened.endpoints.size()),
      landing_((options.keep_payload ? recv_slots_.size() : 1) * kFragmentBytes),
      frame_bytes_(frame_bytes_of(options, *opened.domain.info)),
      sent_frames_(kFrames * std::max<std::uint64_t>(1, frame_bytes_)),
      landed_frames_(recv_slots_.size() * std::max<std::uint64_t>(1, frame_bytes_)),
      send_slots_(std::min(kMaxSlots, opened.domain.info->tx_attr->size)),
      domain_(std::move(opened.domain)),
      outgoing_(kOutgoing),
      endpoints_(std::move(opened.endpoints)),
      provider_(domain_.provider()),
      transport_(transport_of(provider_)),
      send_flags_(send_flags_of(provider_)) {
  std::memset(synthetic_.data(), 0xa5, kFragmentBytes);
  synthetic_.protect();
  register_buffers();
  for (SendSlot& slot : send_slots_) free_slots_.push_back(&slot);
  for (Outgoing& message : outgoing_) free_outgoing_.push_back(&message);
  for (RecvSlot& slot : recv_slots_) {
    slot.receives = true;
    slot.payload = landing_.data() +
                   (options_.keep_payload ? unposted_.size() * kFragmentBytes : std::size_t{0});
    if (frame_bytes_ > 0 && !options_.keep_payload)
      slot.frame = landed_frames_.data() + unposted_.size() * frame_bytes_;
    slot.endpoint = static_cast<int>(unposted_.size() % endpoints_.size());
    unposted_.push_back(&slot);
  }
  for (std::size_t f = 0; f < kFrames && frame_bytes_ > 0; ++f)
    free_frames_.push_back(sent_frames_.data() + f * frame_bytes_);
  post_receives();
  if (!failure_.empty()) throw Error(failure_, ErrorKind::environment);

  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = alarm_.get();
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, alarm_.get(), &event);
  event.data.fd = domain_.wait_fd;
  if (domain_.wait_fd >= 0 && epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, domain_.wait_fd, &event) != 0)
    domain_.wait_fd = -1;
}

void Endpoints::register_buffers() {
  const auto add = [&](const void* memory, std::size_t bytes, std::uint64_t access,
                       Fid<fid_mr>& region) {
    if (const int status = register_memory(domain_, memory, bytes, access, region); status != 0)
      throw Error("provider " + provider_ + " cannot register " + std::to_string(bytes) +
                      " bytes of memory: " + fi_strerror(std::abs(status)) +
                      "; raise the limit of locked memory (ulimit -l)",
                  ErrorKind::environment);
  };
  add(synthetic_.data(), kFragmentBytes, FI_SEND, synthetic_region_);
  add(landing_.data(), landing_.size(), FI_RECV, landing_region_);
  add(sent_frames_.data(), sent_frames_.size(), FI_SEND, sent_frames_region_);
  add(landed_frames_.data(), landed_frames_.size(), FI_RECV, landed_frames_region_);
  add(send_slots_.data(), send_slots_.size() * sizeof(SendSlot), FI_SEND, send_region_);
  add(recv_slots_.data(), recv_slots_.size() * sizeof(RecvSlot), FI_RECV, recv_region_);
}

std::string Endpoints::identity() const {
  const std::uint32_t version = domain_.info->fabric_attr->prov_version;
  return provider_ + " " + std::to_string(FI_MAJOR(version)) + "." +
         std::to_string(FI_MINOR(version));
}

std::string Endpoints::address(int endpoint) const {
  fid* const handle = &endpoints_.at(endpoint).handle->fid;
  std::size_t length = 256;
  std::string raw(length, '\0');
  int status = fi_getname(handle, raw.data(), &length);
  raw.resize(length);
  if (status == -FI_ETOOSMALL) status = fi_getname(handle, raw.data(), &length);
  if (status != 0)
    throw Error(
        "provider " + provider_ + " does not tell its address: " + fi_strerror(std::abs(status)),
        ErrorKind::environment);
  return identity() + "\n" + raw;
}

// Checks that the other end uses the same provider and version and the same address family, because
// otherwise the two would not understand each other and would hang. Returns the bare address.
std::string Endpoints::checked_address(const FabricFlow& flow) const {
  const std::size_t end = flow.address.find('\n');
  const std::string theirs = flow.address.substr(0, end);
  if (end == std::string::npos)
    throw Error(flow.name + " gave no fabric address", ErrorKind::environment);
  if (theirs != identity())
    throw Error(flow.name + " uses provider " + theirs + " where this host uses " + identity() +
                    ", which cannot talk to each other; set fabric.provider alike and install "
                    "the same libfabric everywhere",
                ErrorKind::environment);
  if (flow.address.size() != address(0).size())
    throw Error(flow.name +
                    " has an address of another family (IPv4 and IPv6 mixed?); choose "
                    "addresses of one family with fabric.bind",
                ErrorKind::environment);
  return flow.address.substr(end + 1);
}

void Endpoints::connect(const std::vector<FabricFlow>& flows) {
  if (flows.size() > kMaxFlows)
    throw KeyError("fabric.flows", "fabric.flows: " + std::to_string(flows.size()) +
                                       " flows are more than one engine thread can tell apart (" +
                                       std::to_string(kMaxFlows) +
                                       "); raise run.shards, or choose fewer with "
                                       "fabric.flows: nic or process");
  std::map<std::string, fi_addr_t> known;
  for (const FabricFlow& flow : flows) {
    FlowState state;
    state.flow = flow;
    const std::string raw = checked_address(flow);
    char text[128];
    std::size_t length = sizeof text;
    fi_av_straddr(domain_.av.get(), raw.data(), text, &length);
    state.flow.name += " (" + std::string(text, strnlen(text, sizeof text)) + ")";
    state.flow.address.clear();
    const auto [it, fresh] = known.try_emplace(raw, FI_ADDR_NOTAVAIL);
    if (fresh && fi_av_insert(domain_.av.get(), raw.data(), 1, &it->second, 0, nullptr) != 1)
      throw Error("provider " + provider_ + " does not accept the address of " + state.flow.name,
                  ErrorKind::environment);
    state.address = it->second;
    flows_.push_back(std::move(state));
  }
  reassembly_ = Reassembly(options_.nonce, flows_.size(), options_.keep_payload, frame_bytes_);
}

void Endpoints::watch(int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = watched_ = descriptor;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0)
    throw Error(
        std::string("epoll_ctl: ") + std::strerror(errno) + "; raise fs.epoll.max_user_watches",
        ErrorKind::environment);
}

void Endpoints::fail(const std::string& text) {
  if (failure_.empty()) failure_ = text;
}

}  // namespace ghostrank::ofi

namespace ghostrank {

std::unique_ptr<NetworkFabric> open_ofi_fabric(const OfiOptions& options) {
  return std::make_unique<ofi::Endpoints>(options, open_ofi(options));
}

}  // namespace ghostrank
