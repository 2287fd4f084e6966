#include "emulator/fabric/local.h"

#include <atomic>
#include <poll.h>
#include <sys/eventfd.h>

#include "emulator/common/assert.h"
#include "emulator/common/require_fd.h"

namespace ghostrank {
namespace {

class LocalFabric final : public Fabric {
 public:
  bool try_send(int, Message&) override {
    GHOSTRANK_ASSERT(!"a process alone has no other host");
    return false;
  }
  int poll(std::vector<Message>&) override { return 0; }

  void wait(std::chrono::nanoseconds timeout, std::chrono::nanoseconds spin) override {
    using std::chrono::steady_clock;
    if (timeout <= spin) {
      const auto deadline = steady_clock::now() + timeout;
      while (!woken_.load(std::memory_order_relaxed) && steady_clock::now() < deadline) {
      }
    } else {
      pollfd fd{wake_fd_.get(), POLLIN, 0};
      const auto ns = timeout.count();
      const timespec limit{ns / 1'000'000'000, ns % 1'000'000'000};
      if (ppoll(&fd, 1, &limit, nullptr) > 0) woken_.store(true, std::memory_order_relaxed);
    }
    if (!woken_.exchange(false, std::memory_order_acquire)) return;
    eventfd_t count = 0;
    eventfd_read(wake_fd_.get(), &count);
  }
  void watch(int) override { GHOSTRANK_ASSERT(!"a process alone hears nobody"); }
  void wake() override {
    if (!woken_.exchange(true, std::memory_order_release)) eventfd_write(wake_fd_.get(), 1);
  }
  bool idle() const override { return true; }
  const std::string& failure() const override { return failure_; }
  FabricStats stats() const override { return {}; }

 private:
  const Fd wake_fd_ = require_fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  std::atomic<bool> woken_{false};
  std::string failure_;
};

}  // namespace

std::unique_ptr<Fabric> make_local_fabric() { return std::make_unique<LocalFabric>(); }

}  // namespace ghostrank
