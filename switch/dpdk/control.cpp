#include "switch/dpdk/control.h"

#include <array>
#include <cerrno>
#include <stdexcept>
#include <sys/socket.h>
#include <utility>

namespace ghostrank::dpdk {

Control::Control(int fd, std::function<void(const std::vector<std::string>&)> obey,
                 std::function<std::string()> counters, std::function<void()> stop)
    : fd_(fd), obey_(std::move(obey)), counters_(std::move(counters)), stop_(std::move(stop)) {}

void Control::serve() {
  std::array<char, 65536> buffer{};
  ssize_t n = 0;
  while ((n = recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT)) > 0)
    received_.append(buffer.data(), static_cast<std::size_t>(n));
  if (n == 0) return stop_();
  std::size_t begin = 0;
  for (std::size_t end; (end = received_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    std::string text = answer(received_.substr(begin, end - begin));
    if (text.empty()) continue;
    text += '\n';
    for (std::size_t sent = 0; sent < text.size();) {
      const ssize_t m = send(fd_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (m < 0 && errno != EINTR) return stop_();
      if (m > 0) sent += static_cast<std::size_t>(m);
    }
  }
  received_.erase(0, begin);
}

// Empty: a command, which is answered when it is committed.
std::string Control::answer(const std::string& line) {
  if (line == "counters") return counters_();
  if (line == "stop") {
    stop_();
    return "ok";
  }
  if (line != "commit") {
    commands_.push_back(line);
    return {};
  }
  try {
    obey_(std::exchange(commands_, {}));
    return "ok";
  } catch (const std::runtime_error& error) {
    return std::string("error ") + error.what();
  }
}

}  // namespace ghostrank::dpdk
