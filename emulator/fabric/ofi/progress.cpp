// Moves messages: queues and posts sends, takes completions, waits. See endpoint.h.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <thread>
#include <utility>

#include <rdma/fi_errno.h>

#include "emulator/common/monotonic.h"
#include "emulator/fabric/ofi/endpoint.h"
#include "emulator/host/network_namespace.h"

namespace ghostrank::ofi {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kBatch = 64;                    // completions read at once
constexpr auto kNap = std::chrono::microseconds(50);  // between looks at a queue without descriptor
constexpr auto kTransfer =
    std::chrono::microseconds(500);  // the time of one large fragment when it is slow
constexpr auto kRetry = std::chrono::milliseconds(1);  // longest wait while the provider is full

}  // namespace

// ---- sending

bool Endpoints::try_send(int flow, Message& message) {
  if (!failure_.empty()) return false;
  const auto f = static_cast<std::size_t>(flow);
  if (f >= flows_.size() || message.header.bytes > kMaxMessageBytes) {
    fail("asked to send " + std::to_string(message.header.bytes) + " bytes over flow " +
         std::to_string(flow) + " of " + std::to_string(flows_.size()));
    return false;
  }
  FlowState& state = flows_[f];
  const bool small = frame_bytes_ > 0 && message.header.bytes <= most_in_frame(frame_bytes_);
  const std::uint64_t bytes = message.header.bytes;
  if (!(small && state.open && join_open(state, message))) {
    if (free_outgoing_.empty() || !take(message)) return false;
    Outgoing& out = *free_outgoing_.back();
    free_outgoing_.pop_back();
    if (state.open) close_open(flow);
    if (small) {
      state.open = &out;
      open_.push_back(flow);
    } else {
      close_all_open();  // earlier small messages, of any flow, must not wait behind it
      enqueue(flow, out);
    }
  }
  ++stats_.messages_sent;
  stats_.bytes_sent += bytes;
  return true;
}

// Moves the message into the next free Outgoing. Returns false when the message cannot be sent.
bool Endpoints::take(Message& message) {
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
  out.message = std::move(message);
  out.posted = out.completed = 0;
  out.next = nullptr;
  return true;
}

// Adds the message to the frame of the flow's open message. Returns false when there is no room;
// nothing has changed then.
bool Endpoints::join_open(FlowState& state, Message& message) {
  Outgoing& out = *state.open;
  if (!out.frame) {
    if (free_frames_.empty()) return false;
    out.frame = free_frames_.back();
    free_frames_.pop_back();
    Header header;
    header.kind = kFrameKind;
    header.bytes = append_to_frame(out.frame, 0, frame_bytes_, out.message) & kMostBytes;
    out.region.reset();
    out.message = {header, nullptr};
  }
  const std::uint64_t used = out.message.header.bytes;
  const std::uint64_t then = append_to_frame(out.frame, used, frame_bytes_, message);
  if (then == used) return false;
  out.message.header.bytes = then & kMostBytes;
  message.payload.reset();
  return true;
}

void Endpoints::close_open(int flow) {
  FlowState& state = flows_[flow];
  if (Outgoing* const out = std::exchange(state.open, nullptr)) enqueue(flow, *out);
}

void Endpoints::close_all_open() {
  for (const int flow : open_) close_open(flow);
  open_.clear();
}

void Endpoints::enqueue(int flow, Outgoing& out) {
  FlowState& state = flows_[flow];
  stats_.bytes_waiting += out.message.header.bytes;
  (state.first ? state.last->next : state.first) = &out;
  state.last = &out;
  if (state.pending) return;
  state.pending = true;
  pending_.push_back(flow);
  if (pending_.size() == 1) flush();
}

// Posts fragments of each pending flow in turn, as far as its window and the slots allow.
void Endpoints::flush() {
  for (std::size_t n = pending_.size(); n > 0 && !free_slots_.empty() && failure_.empty(); --n) {
    const int flow = pending_.front();
    FlowState& state = flows_[flow];
    pending_.pop_front();
    while (state.first && post_next(flow)) {
    }
    state.pending = state.first != nullptr;
    if (state.pending) pending_.push_back(flow);
  }
}

// Posts the flow's next fragment. Returns false when there is no room.
bool Endpoints::post_next(int flow) {
  FlowState& state = flows_[flow];
  if (free_slots_.empty() || state.next - state.oldest >= kWindow || is_capped(state)) return false;
  Outgoing& out = *state.first;
  SendSlot& slot = *free_slots_.back();
  const std::uint64_t total = out.message.header.bytes;
  slot.header = out.message.header;
  slot.header.offset =
      pack({state.flow.their_index, state.next, static_cast<std::uint32_t>(out.posted)});
  slot.header.nonce = options_.nonce;
  const std::size_t bytes = fragment_bytes(total, out.posted);
  std::byte* payload = synthetic_.data();
  const Fid<fid_mr>* region = &synthetic_region_;
  if (out.frame) {
    payload = out.frame;
    region = &sent_frames_region_;
  } else if (out.message.payload) {
    payload = out.message.payload.get() + out.posted * kFragmentBytes;
    region = &out.region;
  }
  iovec parts[2] = {{&slot.header, sizeof(Header)}, {payload, bytes}};
  void* descriptors[2] = {descriptor(send_region_), descriptor(*region)};
  fi_msg posting{};
  posting.msg_iov = parts;
  posting.desc = descriptors;
  posting.iov_count = bytes == 0 ? 1 : 2;
  posting.addr = state.address;
  posting.context = static_cast<Slot*>(&slot);
  const ssize_t status = post(state, posting);
  if (status == -FI_EAGAIN) {
    ++stats_.again;
    provider_full_ = true;
    return false;
  }
  if (status != 0) {
    fail("sending to " + state.flow.name + " failed: " + fi_strerror(static_cast<int>(-status)) +
         "; check that its process is alive and that no firewall is in between");
    return false;
  }
  if (SendCap* const cap = options_.endpoints[state.flow.endpoint].cap.get())
    cap->sent(sizeof(Header) + bytes, 0, monotonic_ns());
  free_slots_.pop_back();
  slot.outgoing = &out;
  slot.flow = flow;
  slot.number = state.next++;
  if (++out.posted == fragments_of(total)) state.first = out.next;
  return true;
}

// Whether the cap of the flow's endpoint is closed; then remembers when one opens next.
bool Endpoints::is_capped(const FlowState& state) {
  const SendCap* const cap = options_.endpoints[state.flow.endpoint].cap.get();
  if (!cap || cap->is_open(monotonic_ns())) return false;
  const std::int64_t opens = cap->opens_ns();
  capped_until_ns_ = capped_until_ns_ == 0 ? opens : std::min(capped_until_ns_, opens);
  return true;
}

// The first send of a flow creates the connection's socket, in the namespace of the calling thread,
// so it runs inside the endpoint's namespace.
ssize_t Endpoints::post(FlowState& state, const fi_msg& posting) {
  const auto e = static_cast<std::size_t>(state.flow.endpoint);
  fid_ep* const endpoint = endpoints_[e].handle.get();
  if (state.next > 0) return fi_sendmsg(endpoint, &posting, send_flags_);
  const InNamespace inside(options_.endpoints[e].network_namespace);
  return fi_sendmsg(endpoint, &posting, send_flags_);
}

void Endpoints::on_sent(SendSlot& slot) {
  ++stats_.moved;
  FlowState& state = flows_[slot.flow];
  state.finished |= std::uint64_t{1} << slot.number % kWindow;
  while (state.oldest != state.next && state.finished >> state.oldest % kWindow & 1)
    state.finished &= ~(std::uint64_t{1} << state.oldest++ % kWindow);
  Outgoing& out = *slot.outgoing;
  free_slots_.push_back(&slot);
  if (++out.completed < fragments_of(out.message.header.bytes)) return;
  stats_.bytes_waiting -= out.message.header.bytes;
  out.region.reset();
  out.message.payload.reset();
  if (out.frame) free_frames_.push_back(std::exchange(out.frame, nullptr));
  free_outgoing_.push_back(&out);
}

// ---- receiving

void Endpoints::post_receives() {
  while (!unposted_.empty()) {
    RecvSlot& slot = *unposted_.back();
    slot.header.nonce = ~options_.nonce;  // shows, after an error, whether our message came
    iovec parts[3] = {{&slot.header, sizeof(Header)}, {slot.payload, kFragmentBytes}, {}};
    void* descriptors[3] = {descriptor(recv_region_), descriptor(landing_region_), nullptr};
    if (slot.frame) {
      parts[2] = std::exchange(parts[1], {slot.frame, frame_bytes_});
      descriptors[2] = std::exchange(descriptors[1], descriptor(landed_frames_region_));
    }
    fi_msg posting{};
    posting.msg_iov = parts;
    posting.desc = descriptors;
    posting.iov_count = slot.frame ? 3 : 2;
    posting.addr = FI_ADDR_UNSPEC;
    posting.context = static_cast<Slot*>(&slot);
    const ssize_t status =
        fi_recvmsg(endpoints_[slot.endpoint].handle.get(), &posting, FI_COMPLETION);
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

void Endpoints::on_received(RecvSlot& slot, std::size_t bytes) {
  const std::size_t before = ready_.size();
  switch (reassembly_.accept(slot.header, bytes, slot.frame ? slot.frame : slot.payload, ready_)) {
    case Reassembly::Verdict::stray:
      ++stats_.strays;
      break;
    case Reassembly::Verdict::no_memory:
      fail("no memory for a payload of " + std::to_string(slot.header.bytes) +
           " bytes; verify a smaller job");
      break;
    case Reassembly::Verdict::taken:
      ++stats_.moved;
      break;
  }
  for (std::size_t i = before; i < ready_.size(); ++i) {
    ++stats_.messages_received;
    stats_.bytes_received += ready_[i].header.bytes;
  }
  unposted_.push_back(&slot);
}

// ---- progress

bool Endpoints::drive() {
  if (flows_.empty() || !failure_.empty()) return !failure_.empty();
  provider_full_ = false;
  capped_until_ns_ = 0;
  const bool progressed = read_completions();
  post_receives();
  if (!pending_.empty()) flush();
  return progressed;
}

bool Endpoints::read_completions() {
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
      const fi_cq_msg_entry& entry = entries[i];
      Slot* const slot = static_cast<Slot*>(entry.op_context);
      if (slot->receives)
        on_received(static_cast<RecvSlot&>(*slot), entry.len);
      else
        on_sent(static_cast<SendSlot&>(*slot));
    }
    post_receives();  // the provider needs them while we read on
    if (count < static_cast<ssize_t>(kBatch)) break;
  }
  return progressed;
}

// Handles a completion in error. A receive that was truncated, or that got no header of this run,
// took a stray: counts it. Any other error ends this fabric.
void Endpoints::read_error() {
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
    fail("sending to " + flows_[sent.flow].flow.name + " failed: " + why +
         "; check that its process is alive and that no firewall is in between");
    return on_sent(sent);
  }
  RecvSlot& received = static_cast<RecvSlot&>(*slot);
  if (error.err == FI_ETRUNC || received.header.nonce != options_.nonce) {
    ++stats_.strays;
    unposted_.push_back(&received);
    return;
  }
  const std::size_t flow = unpack(received.header.offset).flow;
  fail("receiving from " + (flow < flows_.size() ? flows_[flow].flow.name : "another process") +
       " failed: " + why + "; check that its process is alive");
}

int Endpoints::poll(std::vector<Message>& arrived) {
  close_all_open();
  drive();
  const int count = static_cast<int>(ready_.size());
  if (arrived.empty()) {
    arrived.swap(ready_);
  } else {
    std::move(ready_.begin(), ready_.end(), std::back_inserter(arrived));
    ready_.clear();
  }
  return count;
}

// ---- waiting

bool Endpoints::take_wake() {
  if (!woken_.exchange(false, std::memory_order_acquire)) return false;
  eventfd_t count = 0;
  eventfd_read(alarm_.get(), &count);
  return true;
}

void Endpoints::wake() {
  if (!woken_.exchange(true, std::memory_order_release)) eventfd_write(alarm_.get(), 1);
}

bool Endpoints::watched_ready() const {
  pollfd fd{watched_, POLLIN, 0};
  return watched_ >= 0 && ::poll(&fd, 1, 0) > 0;
}

// Returns until when a wait spins. A large fragment takes longer than `spin`, and waking up for
// each fragment of a stream costs a quarter of its rate.
steady_clock::time_point Endpoints::awake_until(steady_clock::time_point now,
                                                std::chrono::nanoseconds spin) {
  if (spin.count() == 0) return now;
  if (std::exchange(moved_before_, stats_.moved) != stats_.moved) moved_at_ = now;
  return std::max(now + spin, moved_at_ + kTransfer);
}

void Endpoints::wait(std::chrono::nanoseconds timeout, std::chrono::nanoseconds spin) {
  close_all_open();
  auto now = steady_clock::now();
  const auto deadline = now + timeout;
  const auto spin_until = std::min(awake_until(now, spin), deadline);
  do {
    if (!ready_.empty() || take_wake() || drive() || watched_ready()) return;
    now = steady_clock::now();
  } while (now < spin_until);

  while (now < deadline && domain_.wait_fd < 0) {
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(kNap, deadline - now));
    if (take_wake() || drive() || watched_ready()) return;
    now = steady_clock::now();
  }
  if (now < deadline) sleep(deadline - now);
}

// Blocks until the queue's descriptor, the alarm or the watched descriptor is readable. A provider
// that had no room may get some without signalling the queue, so then it blocks for kRetry at most.
void Endpoints::sleep(std::chrono::nanoseconds timeout) {
  if (provider_full_) timeout = std::min<std::chrono::nanoseconds>(timeout, kRetry);
  if (capped_until_ns_ > 0) {
    const std::chrono::nanoseconds closed(
        std::max<std::int64_t>(0, capped_until_ns_ - monotonic_ns()));
    timeout = std::min(timeout, closed);
  }
  fid* queue = &domain_.cq->fid;
  if (fi_trywait(domain_.fabric.get(), &queue, 1) != FI_SUCCESS) return;
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  const timespec time{whole.count(), (timeout - whole).count()};
  constexpr int kEvents = 3;
  epoll_event events[kEvents];
  int count = epoll_pwait2(epoll_.get(), events, kEvents, &time, nullptr);
  if (count < 0 && errno == ENOSYS) {
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
    count = epoll_wait(epoll_.get(), events, kEvents, static_cast<int>(std::min<long>(ms, 1000)));
  }
  if (count < 0 && errno == EINTR) ++stats_.interrupted;
  for (int i = 0; i < count; ++i) {
    if (events[i].data.fd != alarm_.get()) continue;
    woken_.store(true, std::memory_order_relaxed);
    take_wake();
  }
}

}  // namespace ghostrank::ofi
