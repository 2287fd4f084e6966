// The endpoint at work: posts receives, cuts and queues what is to be sent, drives progress.
// Private to ofi*: set-up is in ofi.cpp, the work in ofi_progress.cpp.
//
//   try_send -> Outgoing (a message) -> queue of its host -> SendSlot (a fragment) -> endpoint
//   endpoint -> RecvSlot (a fragment) -> Reassembly -> ready_ -> poll
//
// Bounds: kOutgoing messages accepted and not yet gone; per host fragments numbered within kWindow
// in flight, all together no more than the provider's queue has entries. One thread; only wake()
// may come from another. Close a fabric only after all processes agreed to (a barrier): what peers
// still send afterwards is lost.
#pragma once

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "emulator/fabric/ofi_fragments.h"
#include "emulator/fabric/ofi_open.h"
#include "profiles/error.h"

namespace ghostrank::ofi {

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

}  // namespace ghostrank::ofi
