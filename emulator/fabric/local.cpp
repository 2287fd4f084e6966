#include "emulator/fabric/local.h"

#include <array>
#include <atomic>
#include <poll.h>
#include <sys/eventfd.h>

#include "emulator/common/require_fd.h"
#include "switch/assert.h"

namespace ghostrank {
namespace {

class LocalFabric final : public Fabric {
 public:
  bool try_send(int, Message&) override {
    GHOSTRANK_ASSERT(false && "a process alone has no other host");
    return false;
  }
  int poll(std::vector<Message>&) override { return 0; }

  void wait(std::chrono::nanoseconds timeout, std::chrono::nanoseconds spin) override {
    using std::chrono::steady_clock;
    if (timeout <= spin) {
      const auto deadline = steady_clock::now() + timeout;
      while (!woken_.load(std::memory_order_relaxed) && !watched_ready() &&
             steady_clock::now() < deadline) {
      }
    } else {
      std::array<pollfd, 2> fds{{{wake_fd_.get(), POLLIN, 0}, {watched_, POLLIN, 0}}};
      const auto ns = timeout.count();
      const timespec limit{ns / 1'000'000'000, ns % 1'000'000'000};
      if (ppoll(fds.data(), watched_ < 0 ? 1 : 2, &limit, nullptr) > 0 && fds[0].revents != 0)
        woken_.store(true, std::memory_order_relaxed);
    }
    if (!woken_.exchange(false, std::memory_order_acquire)) return;
    eventfd_t count = 0;
    eventfd_read(wake_fd_.get(), &count);
  }
  void watch(int descriptor) override { watched_ = descriptor; }
  void wake() override {
    if (!woken_.exchange(true, std::memory_order_release)) eventfd_write(wake_fd_.get(), 1);
  }
  bool idle() const override { return true; }
  const std::string& failure() const override { return failure_; }
  FabricStats stats() const override { return {}; }

 private:
  bool watched_ready() const {
    pollfd fd{watched_, POLLIN, 0};
    return watched_ >= 0 && ::poll(&fd, 1, 0) > 0;
  }

  int watched_ = -1;
  const Fd wake_fd_ = require_fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  std::atomic<bool> woken_{false};
  std::string failure_;
};

}  // namespace

std::unique_ptr<Fabric> make_local_fabric() { return std::make_unique<LocalFabric>(); }

}  // namespace ghostrank
