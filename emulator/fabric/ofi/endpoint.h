// The open endpoints: they post receives, cut and queue messages to send, and drive progress.
// Private to this folder: ofi.cpp sets them up, progress.cpp moves messages.
//
// clang-format off
//
//   try_send -> Outgoing (message or frame) -> queue of its flow -> SendSlot (fragment) -> endpoint
//   endpoint -> RecvSlot (fragment) -> Reassembly -> ready_ -> poll
//
// clang-format on
//
// A small message waits for others of its flow until the next poll() or wait(), which the owner
// calls in every pass of its loop. Several leave as one frame, a single one as it is.
//
// Bounds: at most kOutgoing messages accepted and not yet gone; per flow at most kWindow fragment
// numbers in flight; in all no more fragments than the provider's queue has entries. Threading: one
// thread; only wake() may come from another. Close a fabric only after all processes agreed to (a
// barrier), because what peers send afterwards is lost.
#pragma once

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <string>
#include <sys/mman.h>
#include <vector>

#include "emulator/common/require_fd.h"
#include "emulator/fabric/ofi/fragments.h"
#include "emulator/fabric/ofi/open.h"
#include "profiles/error.h"

namespace ghostrank::ofi {

struct Outgoing {  // an accepted message, or a frame of several
  Message message;
  Fid<fid_mr> region;
  std::uint64_t posted = 0, completed = 0;  // fragments
  Outgoing* next = nullptr;                 // next in the queue of its flow
  std::byte* frame = nullptr;               // not null: a frame of message.header.bytes
};

// A completion's context points to a Slot. Some providers write to its first bytes (FI_CONTEXT).
struct Slot {
  fi_context2 context{};
  bool receives = false;
};
struct SendSlot : Slot {
  Header header;
  Outgoing* outgoing = nullptr;
  int flow = 0;
  std::uint32_t number = 0;
};
struct RecvSlot : Slot {
  Header header;
  std::byte* payload = nullptr;
  std::byte* frame = nullptr;  // not null: the first frame_bytes_ of the payload land here
  int endpoint = 0;
};

struct FlowState {
  FabricFlow flow;
  fi_addr_t address = FI_ADDR_NOTAVAIL;
  Outgoing *first = nullptr, *last = nullptr;  // queue of messages not yet posted completely
  bool pending = false;                        // listed in pending_
  Outgoing* open = nullptr;  // takes further small messages until poll() or wait()
  // Fragments [oldest, next), at most kWindow, are in flight or finished before an older one. Bit n
  // of `finished` is set when the fragment whose number is n modulo kWindow has finished.
  std::uint32_t oldest = 0, next = 0;
  std::uint64_t finished = 0;
};
static_assert(kWindow == 64);

// An anonymous mapping: page-aligned, and without memory until it is touched.
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

class Endpoints final : public NetworkFabric {
 public:
  Endpoints(const OfiOptions& options, OfiOpened opened);

  const std::string& provider() const override { return provider_; }
  const std::string& transport() const override { return transport_; }
  std::string address(int endpoint) const override;
  void connect(const std::vector<FabricFlow>& flows) override;

  bool try_send(int flow, Message& message) override;
  int poll(std::vector<Message>& arrived) override;
  void wait(std::chrono::nanoseconds timeout, std::chrono::nanoseconds spin) override;
  void watch(int descriptor) override;
  void wake() override;
  bool idle() const override { return free_outgoing_.size() == outgoing_.size(); }
  const std::string& failure() const override { return failure_; }
  FabricStats stats() const override { return stats_; }

 private:
  void register_buffers();
  std::string identity() const;
  std::string checked_address(const FabricFlow& flow) const;
  void fail(const std::string& text);

  bool drive();  // true when something completed
  bool read_completions();
  void read_error();
  void on_sent(SendSlot& slot);
  void on_received(RecvSlot& slot, std::size_t bytes);
  void post_receives();
  void flush();
  bool take(Message& message);
  bool join_open(FlowState& flow, Message& message);
  void close_open(int flow);
  void close_all_open();
  void enqueue(int flow, Outgoing& out);
  bool post_next(int flow);
  bool is_capped(const FlowState& flow);
  ssize_t post(FlowState& flow, const fi_msg& posting);

  std::chrono::steady_clock::time_point awake_until(std::chrono::steady_clock::time_point now,
                                                    std::chrono::nanoseconds spin);
  void sleep(std::chrono::nanoseconds timeout);
  bool take_wake();
  bool watched_ready() const;

  // Buffers come first and endpoints last, because endpoints must close before the memory that they
  // use.
  OfiOptions options_;
  Pages synthetic_{kFragmentBytes};
  std::vector<RecvSlot> recv_slots_;
  Pages landing_;
  std::uint64_t frame_bytes_;  // 0: no frames
  Pages sent_frames_, landed_frames_;
  std::vector<SendSlot> send_slots_;
  OfiDomain domain_;
  Fid<fid_mr> synthetic_region_, landing_region_, sent_frames_region_, landed_frames_region_,
      send_region_, recv_region_;
  std::vector<Outgoing> outgoing_;
  std::vector<OfiEndpoint> endpoints_;

  std::vector<SendSlot*> free_slots_;
  std::vector<Outgoing*> free_outgoing_;
  std::vector<RecvSlot*> unposted_;
  std::vector<std::byte*> free_frames_;
  std::vector<int> open_;    // flows with an open message or frame
  std::deque<int> pending_;  // flows with something to post, served in turn
  bool provider_full_ = false;
  std::int64_t capped_until_ns_ = 0;  // when a cap on what is sent opens; 0: none is closed
  std::vector<FlowState> flows_;
  Reassembly reassembly_{0, 0, false};
  std::vector<Message> ready_;

  std::string provider_, transport_, failure_;
  const std::uint64_t send_flags_;
  FabricStats stats_;
  std::uint64_t moved_before_ = 0;                  // stats_.moved at the last wait
  std::chrono::steady_clock::time_point moved_at_;  // when a wait last found that it had grown
  Fd epoll_ = require_fd(epoll_create1(EPOLL_CLOEXEC));
  Fd alarm_ = require_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  int watched_ = -1;
  std::atomic<bool> woken_{false};
};

}  // namespace ghostrank::ofi
