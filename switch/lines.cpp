#include "switch/lines.h"

#include <array>
#include <cerrno>
#include <sys/socket.h>

namespace ghostrank::switchml {
namespace {

constexpr std::size_t kAtOnce = 1 << 16;

bool try_again() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

bool LineSocket::receive() {
  std::array<char, kAtOnce> arrived;  // not initialised, because this runs between any two batches
  const ssize_t n = recv(fd_, arrived.data(), arrived.size(), MSG_DONTWAIT);
  if (n > 0) received_.append(arrived.data(), static_cast<std::size_t>(n));
  return n > 0 || (n < 0 && try_again());
}

std::optional<std::string> LineSocket::next() {
  if (overlong_) return std::nullopt;
  const std::size_t end = received_.find('\n', taken_);
  const bool whole = end != std::string::npos;
  overlong_ = (whole ? end : received_.size()) - taken_ > most_line_;
  std::optional<std::string> line;
  if (whole && !overlong_) {
    line = received_.substr(taken_, end - taken_);
    taken_ = end + 1;
  }
  // Erase once for many lines: erasing after each would move the rest as often.
  if (!line || taken_ == received_.size()) {
    received_.erase(0, taken_);
    taken_ = 0;
  }
  return line;
}

std::string LineSocket::rest() { return received_.substr(taken_); }

bool LineSocket::say(std::string_view line) {
  unsent_ += line;
  unsent_ += '\n';
  return flush();
}

bool LineSocket::flush() {
  while (sent_ < unsent_.size()) {
    const ssize_t n =
        send(fd_, unsent_.data() + sent_, unsent_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) return try_again();
    sent_ += n;
  }
  unsent_.clear();
  sent_ = 0;
  return true;
}

}  // namespace ghostrank::switchml
