// The endpoint at work: posts receives, cuts and queues what is to be sent, drives progress.
//
//   try_send -> Outgoing (a message) -> queue of its host -> SendSlot (a fragment) -> endpoint
//   endpoint -> RecvSlot (a fragment) -> Reassembly -> ready_ -> poll
//
// Bounds: kOutgoing messages accepted and not yet gone; per host fragments numbered within kWindow
// in flight, all together no more than the provider's queue has entries. One thread; only wake()
// may come from another. Close a fabric only after all processes agreed to (a barrier): what peers
// still send afterwards is lost.
#include "emulator/fabric/ofi.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include "emulator/fabric/ofi_fragments.h"
#include "emulator/fabric/ofi_open.h"
#include "profiles/error.h"

namespace ghostrank {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kOutgoing = 256;
constexpr std::size_t kMaxSlots = 256;
constexpr std::size_t kKeptReceives = 64;              // with a payload buffer of their own
constexpr std::size_t kBatch = 64;                     // completions read at once
constexpr auto kNap = std::chrono::microseconds(50);   // where the queue has no descriptor
constexpr auto kRetry = std::chrono::milliseconds(1);  // longest wait while the provider is full

struct Outgoing {  // an accepted message
  Message message;
  Fid<fid_mr> region;
  std::uint64_t posted = 0, completed = 0;  // fragments
};

// What a completion points to. Some providers want the context for themselves.
struct Slot {
  fi_context2 context{};
  bool receives = false;
};
struct SendSlot : Slot {
  Header header;
  Outgoing* outgoing = nullptr;
  int host = 0;
  std::uint32_t number = 0;
};
struct RecvSlot : Slot {
  Header header;
  std::byte* payload = nullptr;
};

struct Peer {
  fi_addr_t address = FI_ADDR_NOTAVAIL;
  std::string name;
  std::deque<Outgoing*> queue;  // not yet completely posted
  bool pending = false;         // listed in pending_
  // Fragments [oldest, next) are in flight or have overtaken one: at most kWindow.
  std::uint32_t oldest = 0, next = 0;
  std::array<bool, kWindow> finished{};
};

// A mapping: page-aligned, untouched until used.
class Pages {
 public:
  explicit Pages(std::size_t bytes)
      : bytes_(bytes),
        memory_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED)
      throw Error(
          "cannot map " + std::to_string(bytes) + " bytes of memory: " + std::strerror(errno),
          ErrorKind::environment);
  }
  ~Pages() { munmap(memory_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(memory_); }
  std::size_t size() const { return bytes_; }
  void protect() { mprotect(memory_, bytes_, PROT_READ); }

 private:
  std::size_t bytes_;
  void* memory_;
};

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {
    if (fd_ < 0)
      throw Error(std::string("cannot open a file descriptor: ") + std::strerror(errno) +
                      "; raise the limit (ulimit -n)",
                  ErrorKind::environment);
  }
  ~Descriptor() { ::close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

std::string transport_of(const std::string& provider) {
  const std::string core = provider.substr(0, provider.find(';'));
  if (core != "net" && core != "tcp" && core != "sockets") return provider;
  std::ifstream file("/proc/sys/net/ipv4/tcp_congestion_control");
  std::string control;
  file >> control;
  return control.empty() ? "tcp" : "tcp-" + control;
}

class Endpoint final : public OfiFabric {
 public:
  Endpoint(const OfiOptions& options, OfiOpened opened);

  const std::string& provider() const override { return provider_; }
  const std::string& transport() const override { return transport_; }
  std::string address() const override;
  void connect(const std::vector<std::string>& addresses, int self) override;

  bool try_send(int host, Message& message) override;
  int poll(std::vector<Message>& arrived) override;
  void wait(std::chrono::nanoseconds timeout, std::chrono::nanoseconds spin) override;
  void wake() override;
  bool idle() const override { return free_outgoing_.size() == outgoing_.size(); }
  const std::string& failure() const override { return failure_; }
  FabricStats stats() const override { return stats_; }

 private:
  void register_buffers();
  std::string identity() const;
  void fail(const std::string& text);

  bool drive();  // true when something completed
  bool read_completions();
  void read_error();
  void on_sent(SendSlot& slot);
  void on_received(RecvSlot& slot, std::size_t bytes);
  void post_receives();
  void flush();
  bool post_next(int host);

  void sleep(std::chrono::nanoseconds timeout);
  bool take_wake();

  // Buffers first, the endpoint last: it must be gone before the memory it uses.
  OfiOptions options_;
  Pages synthetic_{kFragmentBytes};
  Pages landing_;
  std::vector<SendSlot> send_slots_;
  std::vector<RecvSlot> recv_slots_;
  OfiDomain domain_;
  Fid<fid_mr> synthetic_region_, landing_region_, send_region_, recv_region_;
  std::vector<Outgoing> outgoing_;
  Fid<fid_ep> endpoint_;

  std::vector<SendSlot*> free_slots_;
  std::vector<Outgoing*> free_outgoing_;
  std::vector<RecvSlot*> unposted_;
  std::deque<int> pending_;  // hosts with something to post, served in turn
  bool provider_full_ = false;
  std::vector<Peer> peers_;
  int self_ = 0;
  Reassembly reassembly_{0, 0, false};
  std::vector<Message> ready_;

  std::string provider_, transport_, failure_;
  FabricStats stats_;
  Descriptor epoll_{epoll_create1(EPOLL_CLOEXEC)};
  Descriptor alarm_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::atomic<bool> woken_{false};
};

std::size_t receives_of(const OfiOptions& options, const fi_info& info) {
  return std::min(options.keep_payload ? kKeptReceives : kMaxSlots, info.rx_attr->size);
}

Endpoint::Endpoint(const OfiOptions& options, OfiOpened opened)
    : options_(options),
      landing_((options.keep_payload ? receives_of(options, *opened.domain.info) : 1) *
               kFragmentBytes),
      send_slots_(std::min(kMaxSlots, opened.domain.info->tx_attr->size)),
      recv_slots_(receives_of(options, *opened.domain.info)),
      domain_(std::move(opened.domain)),
      outgoing_(kOutgoing),
      endpoint_(std::move(opened.endpoint)),
      provider_(domain_.provider()),
      transport_(transport_of(provider_)) {
  std::memset(synthetic_.data(), 0xa5, kFragmentBytes);
  synthetic_.protect();
  register_buffers();
  for (SendSlot& slot : send_slots_) free_slots_.push_back(&slot);
  for (Outgoing& message : outgoing_) free_outgoing_.push_back(&message);
  for (RecvSlot& slot : recv_slots_) {
    slot.receives = true;
    slot.payload = landing_.data() +
                   (options_.keep_payload ? unposted_.size() * kFragmentBytes : std::size_t{0});
    unposted_.push_back(&slot);
  }
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

void Endpoint::register_buffers() {
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
  add(send_slots_.data(), send_slots_.size() * sizeof(SendSlot), FI_SEND, send_region_);
  add(recv_slots_.data(), recv_slots_.size() * sizeof(RecvSlot), FI_RECV, recv_region_);
}

std::string Endpoint::identity() const {
  const std::uint32_t version = domain_.info->fabric_attr->prov_version;
  return provider_ + " " + std::to_string(FI_MAJOR(version)) + "." +
         std::to_string(FI_MINOR(version));
}

std::string Endpoint::address() const {
  std::size_t length = 256;
  std::string raw(length, '\0');
  int status = fi_getname(&endpoint_->fid, raw.data(), &length);
  raw.resize(length);
  if (status == -FI_ETOOSMALL) status = fi_getname(&endpoint_->fid, raw.data(), &length);
  if (status != 0)
    throw Error(
        "provider " + provider_ + " does not tell its address: " + fi_strerror(std::abs(status)),
        ErrorKind::environment);
  return identity() + "\n" + raw;
}

// Providers do not understand each other, nor always their own other versions: said here rather
// than found out as a hang.
void Endpoint::connect(const std::vector<std::string>& addresses, int self) {
  if (addresses.size() > kMaxProcesses)
    throw Error("a job has at most " + std::to_string(kMaxProcesses) + " processes");
  const std::size_t raw_bytes = address().size() - identity().size() - 1;
  std::vector<Peer> peers(addresses.size());
  for (std::size_t h = 0; h < addresses.size(); ++h) {
    const std::string& blob = addresses[h];
    const std::size_t end = blob.find('\n');
    const std::string host = "host " + std::to_string(h);
    const std::string theirs = blob.substr(0, end);
    if (end == std::string::npos)
      throw Error(host + " gave no fabric address", ErrorKind::environment);
    if (theirs != identity())
      throw Error(host + " uses provider " + theirs + " where host " + std::to_string(self) +
                      " uses " + identity() +
                      ", which cannot talk to each other; set fabric.provider alike and install "
                      "the same libfabric everywhere",
                  ErrorKind::environment);
    const std::string raw = blob.substr(end + 1);
    if (raw.size() != raw_bytes)
      throw Error(host +
                      " has an address of another family (IPv4 and IPv6 mixed?); choose "
                      "addresses of one family with fabric.bind",
                  ErrorKind::environment);
    char text[128];
    std::size_t length = sizeof text;
    fi_av_straddr(domain_.av.get(), raw.data(), text, &length);
    peers[h].name = host + " (" + std::string(text, strnlen(text, sizeof text)) + ")";
    if (fi_av_insert(domain_.av.get(), raw.data(), 1, &peers[h].address, 0, nullptr) != 1)
      throw Error("provider " + provider_ + " does not accept the address of " + peers[h].name,
                  ErrorKind::environment);
  }
  peers_ = std::move(peers);
  self_ = self;
  reassembly_ = Reassembly(options_.nonce, peers_.size(), options_.keep_payload);
}

void Endpoint::fail(const std::string& text) {
  if (failure_.empty()) failure_ = text;
}

// ---- sending

bool Endpoint::try_send(int host, Message& message) {
  if (!failure_.empty() || free_outgoing_.empty()) return false;
  const auto h = static_cast<std::size_t>(host);
  if (h >= peers_.size() || message.header.bytes > kMaxMessageBytes) {
    fail("asked to send " + std::to_string(message.header.bytes) + " bytes to host " +
         std::to_string(host) + " of " + std::to_string(peers_.size()));
    return false;
  }
  Outgoing& out = *free_outgoing_.back();
  if (message.payload) {
    if (const int status = register_memory(domain_, message.payload.get(), message.header.bytes,
                                           FI_SEND, out.region);
        status != 0) {
      fail("provider " + provider_ + " cannot register a payload: " +
           fi_strerror(std::abs(status)) + "; raise the limit of locked memory (ulimit -l)");
      return false;
    }
  }
  free_outgoing_.pop_back();
  ++stats_.messages_sent;
  stats_.bytes_sent += message.header.bytes;
  out.message = std::move(message);
  out.posted = out.completed = 0;
  Peer& peer = peers_[h];
  peer.queue.push_back(&out);
  if (!peer.pending) {
    peer.pending = true;
    pending_.push_back(host);
    if (pending_.size() == 1) flush();
  }
  return true;
}

// Serves every host in turn as far as its window and the slots go.
void Endpoint::flush() {
  for (std::size_t n = pending_.size(); n > 0 && !free_slots_.empty() && failure_.empty(); --n) {
    const int host = pending_.front();
    Peer& peer = peers_[static_cast<std::size_t>(host)];
    pending_.pop_front();
    while (!peer.queue.empty() && post_next(host)) {
    }
    peer.pending = !peer.queue.empty();
    if (peer.pending) pending_.push_back(host);
  }
}

// Posts the next fragment; false: no room.
bool Endpoint::post_next(int host) {
  Peer& peer = peers_[static_cast<std::size_t>(host)];
  if (free_slots_.empty() || peer.next - peer.oldest >= kWindow) return false;
  Outgoing& out = *peer.queue.front();
  SendSlot& slot = *free_slots_.back();
  const std::uint64_t total = out.message.header.bytes;
  slot.header = out.message.header;
  slot.header.offset =
      pack({static_cast<std::uint32_t>(self_), peer.next, static_cast<std::uint32_t>(out.posted)});
  slot.header.nonce = options_.nonce;
  const std::size_t bytes = fragment_bytes(total, out.posted);
  std::byte* const payload = out.message.payload
                                 ? out.message.payload.get() + out.posted * kFragmentBytes
                                 : synthetic_.data();
  iovec parts[2] = {{&slot.header, sizeof(Header)}, {payload, bytes}};
  void* descriptors[2] = {descriptor(send_region_),
                          descriptor(out.message.payload ? out.region : synthetic_region_)};
  fi_msg posting{};
  posting.msg_iov = parts;
  posting.desc = descriptors;
  posting.iov_count = bytes == 0 ? 1 : 2;
  posting.addr = peer.address;
  posting.context = static_cast<Slot*>(&slot);
  const ssize_t status = fi_sendmsg(endpoint_.get(), &posting, FI_COMPLETION);
  if (status == -FI_EAGAIN) {
    ++stats_.again;
    provider_full_ = true;
    return false;
  }
  if (status != 0) {
    fail("sending to " + peer.name + " failed: " + fi_strerror(static_cast<int>(-status)) +
         "; check that its process is alive and that no firewall is in between");
    return false;
  }
  free_slots_.pop_back();
  slot.outgoing = &out;
  slot.host = host;
  slot.number = peer.next++;
  if (++out.posted == fragments_of(total)) peer.queue.pop_front();
  return true;
}

void Endpoint::on_sent(SendSlot& slot) {
  Peer& peer = peers_[static_cast<std::size_t>(slot.host)];
  peer.finished[slot.number % kWindow] = true;
  while (peer.oldest != peer.next && peer.finished[peer.oldest % kWindow])
    peer.finished[peer.oldest++ % kWindow] = false;
  Outgoing& out = *slot.outgoing;
  free_slots_.push_back(&slot);
  if (++out.completed < fragments_of(out.message.header.bytes)) return;
  out.region.reset();
  out.message.payload.reset();
  free_outgoing_.push_back(&out);
}

// ---- receiving

void Endpoint::post_receives() {
  while (!unposted_.empty()) {
    RecvSlot& slot = *unposted_.back();
    slot.header.nonce = ~options_.nonce;  // tells whether anything of ours came before an error
    iovec parts[2] = {{&slot.header, sizeof(Header)}, {slot.payload, kFragmentBytes}};
    void* descriptors[2] = {descriptor(recv_region_), descriptor(landing_region_)};
    fi_msg posting{};
    posting.msg_iov = parts;
    posting.desc = descriptors;
    posting.iov_count = 2;
    posting.addr = FI_ADDR_UNSPEC;
    posting.context = static_cast<Slot*>(&slot);
    const ssize_t status = fi_recvmsg(endpoint_.get(), &posting, FI_COMPLETION);
    if (status == -FI_EAGAIN) {
      ++stats_.again;
      provider_full_ = true;
      return;
    }
    if (status != 0)
      return fail("posting a receive on " + provider_ +
                  " failed: " + fi_strerror(static_cast<int>(-status)));
    unposted_.pop_back();
  }
}

void Endpoint::on_received(RecvSlot& slot, std::size_t bytes) {
  const std::size_t before = ready_.size();
  switch (reassembly_.accept(slot.header, bytes, slot.payload, ready_)) {
    case Reassembly::Verdict::stray:
      ++stats_.strays;
      break;
    case Reassembly::Verdict::no_memory:
      fail("no memory for a payload of " + std::to_string(slot.header.bytes) +
           " bytes; verify a smaller job");
      break;
    case Reassembly::Verdict::taken:
      break;
  }
  for (std::size_t i = before; i < ready_.size(); ++i) {
    ++stats_.messages_received;
    stats_.bytes_received += ready_[i].header.bytes;
  }
  unposted_.push_back(&slot);
}

// ---- progress

bool Endpoint::drive() {
  if (peers_.empty() || !failure_.empty()) return !failure_.empty();
  provider_full_ = false;
  const bool progressed = read_completions();
  post_receives();
  if (!pending_.empty()) flush();
  return progressed;
}

bool Endpoint::read_completions() {
  std::array<fi_cq_msg_entry, kBatch> entries;
  bool progressed = false;
  // Bounded, so that a fast sender cannot keep the owner here.
  for (int round = 0; round < 8 && failure_.empty(); ++round) {
    const ssize_t count = fi_cq_read(domain_.cq.get(), entries.data(), entries.size());
    if (count == -FI_EAGAIN || count == 0) break;
    progressed = true;
    if (count == -FI_EAVAIL) {
      read_error();
    } else if (count < 0) {
      fail("reading completions of " + provider_ +
           " failed: " + fi_strerror(static_cast<int>(-count)));
    }
    for (ssize_t i = 0; i < count; ++i) {
      const fi_cq_msg_entry& entry = entries[static_cast<std::size_t>(i)];
      Slot* const slot = static_cast<Slot*>(entry.op_context);
      if (slot->receives)
        on_received(static_cast<RecvSlot&>(*slot), entry.len);
      else
        on_sent(static_cast<SendSlot&>(*slot));
    }
    post_receives();  // the provider needs them while more is read
    if (count < static_cast<ssize_t>(kBatch)) break;
  }
  return progressed;
}

// A receive that failed before anything of this run had arrived in it was meant by a stray: too
// long, or cut off. Everything else is the end of this fabric.
void Endpoint::read_error() {
  fi_cq_err_entry error{};
  if (fi_cq_readerr(domain_.cq.get(), &error, 0) < 0) return;
  Slot* const slot = static_cast<Slot*>(error.op_context);
  std::string why = fi_strerror(error.err);
  const char* const detail =
      fi_cq_strerror(domain_.cq.get(), error.prov_errno, error.err_data, nullptr, 0);
  if (detail != nullptr && why != detail) why += std::string(" (") + detail + ")";
  if (slot == nullptr) return fail("provider " + provider_ + " reports: " + why);
  if (!slot->receives) {
    SendSlot& sent = static_cast<SendSlot&>(*slot);
    fail("sending to " + peers_[static_cast<std::size_t>(sent.host)].name + " failed: " + why +
         "; check that its process is alive and that no firewall is in between");
    return on_sent(sent);
  }
  RecvSlot& received = static_cast<RecvSlot&>(*slot);
  if (error.err == FI_ETRUNC || received.header.nonce != options_.nonce) {
    ++stats_.strays;
    unposted_.push_back(&received);
    return;
  }
  const std::size_t source = unpack(received.header.offset).source;
  fail("receiving from " + (source < peers_.size() ? peers_[source].name : "another process") +
       " failed: " + why + "; check that its process is alive");
}

int Endpoint::poll(std::vector<Message>& arrived) {
  drive();
  const int count = static_cast<int>(ready_.size());
  std::move(ready_.begin(), ready_.end(), std::back_inserter(arrived));
  ready_.clear();
  return count;
}

// ---- waiting

bool Endpoint::take_wake() {
  if (!woken_.exchange(false, std::memory_order_acquire)) return false;
  eventfd_t count = 0;
  eventfd_read(alarm_.get(), &count);
  return true;
}

void Endpoint::wake() {
  if (!woken_.exchange(true, std::memory_order_release)) eventfd_write(alarm_.get(), 1);
}

void Endpoint::wait(std::chrono::nanoseconds timeout, std::chrono::nanoseconds spin) {
  const auto start = Clock::now();
  const auto deadline = start + timeout;
  const auto spin_until = start + std::min(spin, timeout);
  auto now = start;
  do {
    if (!ready_.empty() || take_wake() || drive()) return;
    now = Clock::now();
  } while (now < spin_until);

  while (now < deadline && domain_.wait_fd < 0) {
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(kNap, deadline - now));
    if (take_wake() || drive()) return;
    now = Clock::now();
  }
  if (now < deadline) sleep(deadline - now);
}

// Until the queue's descriptor or the alarm fires. A provider that had no room may get some without
// telling the queue.
void Endpoint::sleep(std::chrono::nanoseconds timeout) {
  if (provider_full_) timeout = std::min<std::chrono::nanoseconds>(timeout, kRetry);
  fid* queue = &domain_.cq->fid;
  if (fi_trywait(domain_.fabric.get(), &queue, 1) != FI_SUCCESS) return;
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  const timespec time{whole.count(), (timeout - whole).count()};
  epoll_event events[2];
  int count = epoll_pwait2(epoll_.get(), events, 2, &time, nullptr);
  if (count < 0 && errno == ENOSYS) {
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
    count = epoll_wait(epoll_.get(), events, 2, static_cast<int>(std::min<long>(ms, 1000)));
  }
  for (int i = 0; i < count; ++i) {
    if (events[i].data.fd != alarm_.get()) continue;
    woken_.store(true, std::memory_order_relaxed);
    take_wake();
  }
}

}  // namespace

std::unique_ptr<OfiFabric> OfiFabric::open(const OfiOptions& options) {
  return std::make_unique<Endpoint>(options, open_ofi(options));
}

}  // namespace ghostrank
