#include "tools/switch_control.h"

#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "profiles/error.h"
#include "tools/switch_plan.h"
#include "tools/switch_report.h"

namespace ghostrank {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMostRequest = 1 << 16;
constexpr int kPatienceMs = 1000;  // for a client to finish its line: the switch stands still

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

// A line, without its end; what came when the peer closed or fell silent.
std::string read_line(int fd, int patience_ms) {
  std::string line;
  char c = 0;
  pollfd polled{fd, POLLIN, 0};
  while (line.size() < kMostRequest && poll(&polled, 1, patience_ms) > 0 && read(fd, &c, 1) == 1 &&
         c != '\n')
    line += c;
  return line;
}

void write_line(int fd, std::string line) {
  line += '\n';
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t n = send(fd, line.data() + done, line.size() - done, MSG_NOSIGNAL);
    if (n <= 0) return;  // the client is gone
    done += static_cast<std::size_t>(n);
  }
}

}  // namespace

std::string answer_switch(RunningSwitch& sw, std::string_view request) {
  const ordered_json json = ordered_json::parse(request, nullptr, false);
  if (!json.is_object() || !json.contains("do") || !json["do"].is_string())
    return refused(
        "a request is a JSON object with \"do\": admit, remove, reset, counters or stop");
  const std::string verb = json["do"];
  const auto done = [](bool found, const std::string& job) {
    return found ? std::string(R"({"ok":true})") : refused("there is no job '" + job + "'");
  };
  if (verb == "counters") {
    ordered_json all = ordered_json::parse(switch_json(sw.counters()));
    all["ok"] = true;
    return all.dump();
  }
  if (verb == "stop") {
    sw.stop();
    return R"({"ok":true})";
  }
  if (verb == "admit") {
    if (!json.contains("job")) return refused("admit needs a \"job\"");
    try {
      const ordered_json& job = json["job"];
      const std::string text = job.is_string() ? job.get<std::string>() : job.dump();
      const std::string why = sw.admit(read_switch_job(text, "job"));
      return why.empty() ? R"({"ok":true})" : refused(why);
    } catch (const Error& error) {
      return refused(error.what());
    }
  }
  if (verb == "remove" || verb == "reset") {
    if (!json.contains("job") || !json["job"].is_string())
      return refused(verb + " needs a \"job\": its name");
    const std::string job = json["job"];
    return done(verb == "remove" ? sw.remove(job) : sw.reset(job), job);
  }
  return refused("there is no request '" + verb +
                 "'; known are admit, remove, reset, counters, stop");
}

SwitchControl::SwitchControl(std::string path, RunningSwitch& sw)
    : path_(std::move(path)), switch_(sw), fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const sockaddr_un address = address_of(path_);
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool taken = connect(probe, generic(address), sizeof address) == 0;
  close(probe);
  if (taken) {
    close(fd_);
    throw Error("a switch listens at " + path_ + " already; give this one another --socket",
                ErrorKind::environment);
  }
  unlink(path_.c_str());
  const mode_t mask = umask(0177);
  const bool bound = bind(fd_, generic(address), sizeof address) == 0 && listen(fd_, 8) == 0;
  const int why = errno;
  umask(mask);
  if (!bound) {
    close(fd_);
    throw Error("the control socket " + path_ + " cannot be made: " + std::strerror(why),
                ErrorKind::environment);
  }
}

// The path goes while it is still this switch's: nobody else can have taken it.
SwitchControl::~SwitchControl() {
  unlink(path_.c_str());
  close(fd_);
  if (client_ >= 0) close(client_);
}

switchml::Watch SwitchControl::watch() {
  return {fd_, [this] { serve(); }};
}

void SwitchControl::serve() {
  const int client = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  const std::string request = read_line(client, kPatienceMs);
  write_line(client, answer_switch(switch_, request));
  const ordered_json json = ordered_json::parse(request, nullptr, false);
  const bool stops = client_ < 0 && json.is_object() && json.value("do", ordered_json()) == "stop";
  if (stops)
    client_ = client;
  else
    close(client);
}

std::string ask_switch(const std::string& path, const std::string& request, Until until) {
  const sockaddr_un address = address_of(path);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd, generic(address), sizeof address) != 0) {
    const int why = errno;
    close(fd);
    throw Error("no switch answers at " + path + ": " + std::strerror(why) +
                    "; start one with: ghostrank switch run --socket " + path,
                ErrorKind::environment);
  }
  write_line(fd, request);
  const std::string answer = read_line(fd, 10 * kPatienceMs);
  if (until == Until::stopped) read_line(fd, 10 * kPatienceMs);
  close(fd);
  if (answer.empty())
    throw Error("the switch at " + path + " gave no answer", ErrorKind::environment);
  return answer;
}

}  // namespace ghostrank
