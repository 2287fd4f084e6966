#include "tools/switching/targets/simple_switch.h"

#include <arpa/inet.h>
#include <cstring>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "profiles/error.h"
#include "switch/bmv2/entries.h"
#include "switch/ports/fd.h"
#include "tools/switching/targets/p4_compiler.h"

namespace ghostrank {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{60};  // for simple_switch to start
constexpr std::chrono::milliseconds kLook{50};
constexpr const char *kFrom = "p4lang's bmv2", *kUtilLinux = "util-linux";

// In a fresh network namespace the loopback interface is down.
void bring_loopback_up() {
  const Fd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  if (ioctl(fd.get(), SIOCGIFFLAGS, &request) != 0 || (request.ifr_flags & IFF_UP) != 0) return;
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  if (ioctl(fd.get(), SIOCSIFFLAGS, &request) != 0)
    throw Error(std::string("--target bmv2: the loopback interface, over which bmv2 takes its "
                            "commands, is down: ") +
                    std::strerror(errno) + "; run as root, or: ip link set lo up",
                ErrorKind::environment);
}

int free_port() {
  const Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool bound = bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0;
  if (!bound) throw Error("no TCP port can be had on 127.0.0.1", ErrorKind::environment);
  return ntohs(address.sin_port);
}

bool listens(const std::string& port) {
  const Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(port)));
  return connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace

SimpleSwitch::SimpleSwitch(const std::string& program, const std::vector<std::string>& links,
                           std::chrono::seconds files_after)
    : commands_(program_on_path("simple_switch_CLI", "--target bmv2", kFrom)) {
  // It ends with this process, however that ends, and no Ctrl-C of a terminal ends it before its
  // counters are read.
  std::vector<std::string> words{program_on_path("setpriv", "--target bmv2", kUtilLinux),
                                 "--pdeathsig", "TERM",
                                 program_on_path("setsid", "--target bmv2", kUtilLinux),
                                 program_on_path("simple_switch", "--target bmv2", kFrom)};
  const bool files = files_after.count() > 0;
  if (files)
    words.insert(words.end(), {"--use-files", std::to_string(files_after.count())});
  else
    bring_loopback_up();
  port_ = std::to_string(free_port());
  // Switches of one machine need numbers of their own.
  words.insert(words.end(), {"--thrift-port", port_, "--device-id", std::to_string(getpid())});
  for (std::size_t p = 0; p < links.size(); ++p)
    words.insert(words.end(), {"-i", std::to_string(p) + "@" + links[p]});
  words.push_back(program);
  began_ = Clock::now();
  child_ = std::make_unique<Child>(std::move(words));
  while (!listens(port_)) {
    if (child_->wait_output(kLook) && !child_->read_output()) fail_ended();
    if (Clock::now() > began_ + kPatience)
      throw Error("simple_switch takes no commands within " + std::to_string(kPatience.count()) +
                      " s; try again on a machine that is less busy",
                  ErrorKind::environment);
  }
}

std::string SimpleSwitch::answers(const std::vector<std::string>& lines) const {
  if (lines.empty()) return "";
  const std::string input = folder_.file("commands");
  write_lines(input, lines);
  return output_of({commands_, "--thrift-port", port_}, input);
}

std::string SimpleSwitch::command(const std::vector<std::string>& lines) const {
  std::string given = answers(lines);
  check(given);
  return given;
}

void SimpleSwitch::check(const std::string& answers) {
  if (const std::string refusal = bmv2::refusal_in(answers); !refusal.empty())
    throw Error("bmv2 refuses a command: " + refusal, ErrorKind::environment);
}

void SimpleSwitch::fail_ended() const {
  throw Error("simple_switch ended early: " + child_->output(), ErrorKind::environment);
}

}  // namespace ghostrank
