#include "switch/dpdk/control.h"

#include <cerrno>
#include <optional>
#include <stdexcept>
#include <sys/epoll.h>
#include <system_error>
#include <utility>

namespace ghostrank::dpdk {

Control::Control(int fd, std::function<void(const std::vector<std::string>&)> obey,
                 std::function<std::string()> counters, std::function<void()> stop)
    : fd_(fd),
      ready_(epoll_create1(EPOLL_CLOEXEC)),
      lines_(fd, kMostLine),
      obey_(std::move(obey)),
      counters_(std::move(counters)),
      stop_(std::move(stop)) {
  epoll_event event{};
  event.events = EPOLLIN;
  if (!ready_.is_open() || epoll_ctl(ready_.get(), EPOLL_CTL_ADD, fd_, &event) != 0)
    throw std::system_error(errno, std::generic_category(),
                            "the line of control cannot be watched");
}

// Takes no further request while an answer is unsent: the other end must read it first.
void Control::serve() {
  bool open = lines_.flush(), received = false;
  while (open && lines_.unsent_bytes() == 0) {
    if (std::optional<std::string> line = lines_.next()) {
      const std::string text = answer(*std::move(line));
      open = text.empty() || lines_.say(text);
    } else if (received) {
      break;
    } else {
      open = lines_.receive();
      received = true;
    }
  }
  if (!open || lines_.overlong()) return stop_();
  watch_for(lines_.unsent_bytes() > 0);
}

void Control::watch_for(bool room) {
  if (room == watches_room_) return;
  watches_room_ = room;
  epoll_event event{};
  event.events = room ? EPOLLOUT : EPOLLIN;
  epoll_ctl(ready_.get(), EPOLL_CTL_MOD, fd_, &event);
}

// Empty for a command: "commit" answers for all commands before it.
std::string Control::answer(std::string line) {
  if (line == "counters") return counters_();
  if (line == "commit") return commit();
  if (line == "stop") {
    stop_();
    return "ok";
  }
  command_bytes_ += line.size();
  if (command_bytes_ <= kMostCommands) commands_.push_back(std::move(line));
  return {};
}

std::string Control::commit() {
  const std::vector<std::string> commands = std::exchange(commands_, {});
  if (const std::size_t bytes = std::exchange(command_bytes_, 0); bytes > kMostCommands)
    return "error " + std::to_string(bytes) + " bytes of commands at once; at most " +
           std::to_string(kMostCommands) + " are carried out";
  try {
    obey_(commands);
    return "ok";
  } catch (const std::runtime_error& error) {
    return std::string("error ") + error.what();
  }
}

}  // namespace ghostrank::dpdk
