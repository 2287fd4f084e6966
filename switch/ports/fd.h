// A file descriptor and its owner: closed when the owner is gone. Nothing else closes descriptors.
//
// Threading: one owner.
#pragma once

#include <cerrno>
#include <unistd.h>
#include <utility>

namespace ghostrank {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}  // negative: none, as failed system calls return
  ~Fd() { close(); }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

  // Keeps errno, which may tell of an earlier failure. For a written file use close_written(),
  // which reports lost data.
  void close() {
    const int before = errno;
    if (is_open()) ::close(std::exchange(fd_, -1));
    errno = before;
  }
  // Requires an open descriptor. False, with errno: written data may be lost.
  [[nodiscard]] bool close_written() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_ = -1;
};

}  // namespace ghostrank
