#include "emulator/fabric/local.h"

#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "emulator/assert.h"
#include "profiles/error.h"

namespace ghostrank {
namespace {

class LocalFabric final : public Fabric {
 public:
  LocalFabric() : wake_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (wake_fd_ < 0) {
      throw Error(std::string("eventfd: ") + std::strerror(errno) +
                      "; raise the limit on open files (ulimit -n)",
                  ErrorKind::environment);
    }
  }
  ~LocalFabric() override { close(wake_fd_); }
  LocalFabric(const LocalFabric&) = delete;
  LocalFabric& operator=(const LocalFabric&) = delete;

  bool try_send(int, Message&) override {
    GHOSTRANK_ASSERT(!"a process alone has no other host");
    return false;
  }
  int poll(std::vector<Message>&) override { return 0; }

  void wait(std::chrono::nanoseconds timeout, std::chrono::nanoseconds spin) override {
    if (timeout <= spin) {
      const auto deadline = std::chrono::steady_clock::now() + timeout;
      while (std::chrono::steady_clock::now() < deadline) {
      }
      return;
    }
    pollfd fd{wake_fd_, POLLIN, 0};
    const auto ns = timeout.count();
    const timespec limit{ns / 1'000'000'000, ns % 1'000'000'000};
    if (ppoll(&fd, 1, &limit, nullptr) > 0) {
      std::uint64_t drained = 0;
      [[maybe_unused]] const auto n = read(wake_fd_, &drained, sizeof drained);
    }
  }
  void wake() override {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto n = write(wake_fd_, &one, sizeof one);
  }
  bool idle() const override { return true; }
  const std::string& failure() const override { return failure_; }
  FabricStats stats() const override { return {}; }

 private:
  int wake_fd_;
  std::string failure_;
};

}  // namespace

std::unique_ptr<Fabric> make_local_fabric() { return std::make_unique<LocalFabric>(); }

}  // namespace ghostrank
