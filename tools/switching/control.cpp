#include "tools/switching/control.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "profiles/error.h"
#include "tools/switching/plan.h"
#include "tools/switching/report.h"

namespace ghostrank {
namespace {

using nlohmann::ordered_json;

// A client waits so long for each part of an answer. bmv2 takes some hundred entries a second, and
// a job may have thousands.
constexpr int kPatienceMs = 60'000;

std::string done() { return ordered_json{{"ok", true}}.dump(); }

std::string refused(const std::string& why) {
  return ordered_json{{"ok", false}, {"error", why}}.dump();
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    throw Error("a control socket's path has 1 to " + std::to_string(sizeof address.sun_path - 1) +
                " characters: '" + path + "'");
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

const sockaddr* generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

// Reads one line (without its end) as a client that waits for its answer. Returns the bytes so far
// when the switch closes the connection or says nothing for kPatienceMs.
std::string read_line(int fd) {
  std::string text;
  std::array<char, 4096> buffer;
  pollfd polled{fd, POLLIN, 0};
  while (poll(&polled, 1, kPatienceMs) > 0) {
    const ssize_t n = read(fd, buffer.data(), buffer.size());
    if (n <= 0) break;
    const std::string_view arrived(buffer.data(), static_cast<std::size_t>(n));
    const std::size_t end = arrived.find('\n');
    text += arrived.substr(0, end);
    if (end != std::string_view::npos) break;
  }
  return text;
}

bool is_another_file(const std::string& path) {
  struct stat there {};
  return lstat(path.c_str(), &there) == 0 && !S_ISSOCK(there.st_mode);
}

void write_line(int fd, std::string line) {
  line += '\n';
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t n = send(fd, line.data() + done, line.size() - done, MSG_NOSIGNAL);
    if (n <= 0) return;  // the switch is gone: read_line() will return nothing
    done += n;
  }
}

// Throws Error where the job is none, or the switch does not do what it is asked.
std::string carry_out(RunningSwitch& sw, std::string_view request) {
  const ordered_json json = ordered_json::parse(request, nullptr, false);
  if (!json.is_object() || !json.contains("do") || !json["do"].is_string())
    return refused(
        "a request is a JSON object with \"do\": admit, remove, reset, counters or stop");
  const std::string verb = json["do"];
  const auto found_or_refused = [](bool found, const std::string& job) {
    return found ? done() : refused("there is no job '" + job + "'");
  };
  if (verb == "counters") {
    ordered_json all = ordered_json::parse(switch_json(sw.counters()));
    all["ok"] = true;
    return all.dump();
  }
  if (verb == "stop") {
    sw.stop();
    return done();
  }
  if (verb == "admit") {
    if (!json.contains("job")) return refused("admit needs a \"job\"");
    const ordered_json& job = json["job"];
    const std::string text = job.is_string() ? job.get<std::string>() : job.dump();
    const std::string why = sw.admit(read_switch_job(text, "job"));
    return why.empty() ? done() : refused(why);
  }
  if (verb == "remove" || verb == "reset") {
    if (!json.contains("job") || !json["job"].is_string())
      return refused(verb + " needs a \"job\": its name");
    const std::string job = json["job"];
    return found_or_refused(verb == "remove" ? sw.remove(job) : sw.reset(job), job);
  }
  return refused("there is no request '" + verb +
                 "'; known are admit, remove, reset, counters, stop");
}

}  // namespace

std::string answer_switch(RunningSwitch& sw, std::string_view request) {
  try {
    return carry_out(sw, request);
  } catch (const Error& error) {
    return refused(error.what());
  }
}

SwitchControl::SwitchControl(std::string path, RunningSwitch& sw,
                             std::chrono::milliseconds patience)
    : path_(std::move(path)),
      switch_(sw),
      patience_(patience),
      listener_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
      alarm_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
      ready_(epoll_create1(EPOLL_CLOEXEC)) {
  if (!listener_.is_open() || !alarm_.is_open() || !ready_.is_open())
    throw Error(std::string("the control socket cannot be served: ") + std::strerror(errno),
                ErrorKind::environment);
  listen_at_path();
  watch_for(EPOLL_CTL_ADD, listener_.get(), EPOLLIN);
  watch_for(EPOLL_CTL_ADD, alarm_.get(), EPOLLIN);
}

void SwitchControl::listen_at_path() {
  const sockaddr_un address = address_of(path_);
  // EAGAIN: another switch listens there, with a full backlog.
  const Fd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (connect(probe.get(), generic(address), sizeof address) == 0 || errno == EAGAIN)
    throw Error("a switch listens at " + path_ + " already; give this one another --socket",
                ErrorKind::environment);
  if (is_another_file(path_))
    throw Error("the control socket " + path_ +
                    " cannot be made: a file has this name; choose another --socket",
                ErrorKind::environment);
  unlink(path_.c_str());
  const mode_t mask = umask(0177);
  const bool bound = bind(listener_.get(), generic(address), sizeof address) == 0 &&
                     listen(listener_.get(), kMostClients) == 0;
  const int why = errno;
  umask(mask);
  if (!bound)
    throw Error("the control socket " + path_ + " cannot be made: " + std::strerror(why),
                ErrorKind::environment);
}

// Removes the path before closing the socket: while this switch listens, no other one can have
// taken it.
SwitchControl::~SwitchControl() {
  if (!is_another_file(path_)) unlink(path_.c_str());
  listener_.close();
}

switchml::Watch SwitchControl::watch() {
  return {ready_.get(), [this] { serve(); }};
}

void SwitchControl::watch_for(int operation, int fd, unsigned events) {
  epoll_event event{};
  event.events = events;
  epoll_ctl(ready_.get(), operation, fd, &event);
}

// Serves one request at a time, so that frames get their turn before the next one.
void SwitchControl::serve() {
  accept_clients();
  for (Client& client : clients_) {
    if (advance(client)) break;
  }
  drop_late_clients();
  std::erase_if(clients_, [](const Client& client) { return !client.socket.is_open(); });
  if (const bool full = clients_.size() >= kMostClients; full != full_) {
    full_ = full;
    watch_for(EPOLL_CTL_MOD, listener_.get(), full ? 0u : unsigned{EPOLLIN});
  }
  set_alarm();
}

void SwitchControl::accept_clients() {
  while (clients_.size() < kMostClients) {
    Fd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open()) return;
    watch_for(EPOLL_CTL_ADD, socket.get(), EPOLLIN);
    const int fd = socket.get();
    clients_.push_back(
        {std::move(socket), switchml::LineSocket(fd, kMostRequest), Clock::now() + patience_});
  }
}

bool SwitchControl::advance(Client& client) {
  if (!client.socket.is_open()) return false;
  if (client.answered) {
    deliver(client);
    return false;
  }
  const bool open = client.lines.receive();
  const std::optional<std::string> line = client.lines.next();
  if (client.lines.overlong()) {
    client.lines.say(refused("a request has at most " + std::to_string(kMostRequest) + " bytes"));
    client.socket.close();
  } else if (line || !open) {
    answer(client, line ? *line : client.lines.rest());
    return true;
  }
  return false;
}

void SwitchControl::answer(Client& client, const std::string& request) {
  client.lines.say(answer_switch(switch_, request));
  const ordered_json json = ordered_json::parse(request, nullptr, false);
  client.stops = json.is_object() && json.value("do", ordered_json()) == "stop";
  client.answered = true;
  client.until = Clock::now() + patience_;
  watch_for(EPOLL_CTL_MOD, client.socket.get(), EPOLLOUT);
  deliver(client);
}

// Closes the client's socket when the answer has been sent; bytes after the request are not read.
void SwitchControl::deliver(Client& client) {
  if (client.lines.flush() && client.lines.unsent_bytes() > 0) return;
  if (client.stops && !stopper_.is_open()) {
    watch_for(EPOLL_CTL_DEL, client.socket.get(), 0);
    std::swap(stopper_, client.socket);
  }
  client.socket.close();
}

// A client may have sent its line or taken its answer while others were served, so advance it once
// more before dropping it.
void SwitchControl::drop_late_clients() {
  for (Client& client : clients_) {
    if (Clock::now() < client.until) continue;
    advance(client);
    if (!client.socket.is_open() || Clock::now() < client.until) continue;
    if (!client.answered)
      client.lines.say(refused("no whole line within " + std::to_string(patience_.count()) +
                               " ms; a request is one line, with its end"));
    client.socket.close();
  }
}

void SwitchControl::set_alarm() {
  itimerspec alarm{};
  if (!clients_.empty()) {
    const auto first =
        std::min_element(clients_.begin(), clients_.end(),
                         [](const Client& a, const Client& b) { return a.until < b.until; });
    const auto ns = std::chrono::nanoseconds(first->until.time_since_epoch()).count();
    alarm.it_value = {ns / 1'000'000'000, ns % 1'000'000'000};
  }
  timerfd_settime(alarm_.get(), TFD_TIMER_ABSTIME, &alarm, nullptr);
}

std::string ask_switch(const std::string& path, const std::string& request, Until until) {
  const sockaddr_un address = address_of(path);
  const Fd line(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(line.get(), generic(address), sizeof address) != 0)
    throw Error("no switch answers at " + path + ": " + std::strerror(errno) +
                    "; start one with: ghostrank switch run --socket " + path,
                ErrorKind::environment);
  write_line(line.get(), request);
  const std::string answer = read_line(line.get());
  if (until == Until::stopped) read_line(line.get());
  if (answer.empty())
    throw Error("the switch at " + path + " gave no answer", ErrorKind::environment);
  return answer;
}

}  // namespace ghostrank
