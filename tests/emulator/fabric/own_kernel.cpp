#include "tests/emulator/fabric/own_kernel.h"

#include <cerrno>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ghostrank::testing {

std::function<int(const mmsghdr*, int count)> kernel_takes;
std::atomic<int> calls{0};
std::function<int(int fd, const msghdr&)> kernel_refuses;
std::atomic<int> looks{0};

extern "C" ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  const int error = kernel_refuses ? kernel_refuses(fd, *message) : 0;
  if (error == 0) return syscall(SYS_sendmsg, fd, message, flags);
  errno = error;
  return -1;
}

extern "C" int ppoll(pollfd* fds, nfds_t count, const timespec* limit, const sigset_t* mask) {
  timespec left = limit ? *limit : timespec{};  // the kernel changes it
  if (limit && left.tv_sec == 0 && left.tv_nsec == 0) ++looks;
  return static_cast<int>(
      syscall(SYS_ppoll, fds, count, limit ? &left : nullptr, mask, mask ? _NSIG / 8 : 0));
}

extern "C" int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  ++calls;
  int taken = static_cast<int>(count);
  if (kernel_takes) taken = kernel_takes(messages, taken);
  if (taken < 0) {
    errno = -taken;
    return -1;
  }
  return static_cast<int>(syscall(SYS_sendmmsg, fd, messages, taken, flags));
}

}  // namespace ghostrank::testing
