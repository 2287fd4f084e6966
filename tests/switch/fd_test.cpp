// Whose descriptor is closed, and when.
#include "switch/ports/fd.h"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

#include <gtest/gtest.h>

namespace ghostrank {
namespace {

bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }
int some_fd() { return open("/dev/null", O_WRONLY | O_CLOEXEC); }

TEST(Fd, IsClosedWithItsOwner) {
  const int fd = some_fd();
  {
    const Fd owner(fd);
    EXPECT_TRUE(owner.is_open());
    EXPECT_EQ(owner.get(), fd);
    EXPECT_TRUE(is_open(fd));
  }
  EXPECT_FALSE(is_open(fd));
}

TEST(Fd, HasOneOwner) {
  const int fd = some_fd(), other = some_fd();
  Fd first(fd), second(other);
  second = std::move(first);
  EXPECT_FALSE(is_open(other)) << "what it had before is nobody's";
  EXPECT_FALSE(first.is_open());
  EXPECT_EQ(second.get(), fd);
  const Fd third(std::move(second));
  EXPECT_EQ(third.get(), fd);
  EXPECT_TRUE(is_open(fd));
}

// A number that was closed may be another's by now.
TEST(Fd, IsClosedOnce) {
  Fd first(some_fd());
  const int number = first.get();
  first.close();
  const Fd second(some_fd());
  ASSERT_EQ(second.get(), number);
  first.close();
  { const Fd gone(std::move(first)); }
  EXPECT_TRUE(is_open(number));
}

TEST(Fd, LeavesWhatFailedBefore) {
  {
    const Fd invalid(1 << 30);  // which close(2) refuses, with EBADF
    errno = ENOENT;
  }
  EXPECT_EQ(errno, ENOENT);
  Fd invalid(1 << 30);
  EXPECT_FALSE(invalid.close_written());
  EXPECT_EQ(errno, EBADF);
  EXPECT_TRUE(Fd(some_fd()).close_written());
}

}  // namespace
}  // namespace ghostrank
