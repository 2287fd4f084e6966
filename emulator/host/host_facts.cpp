#include "emulator/host/host_facts.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <netdb.h>
#include <sstream>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "emulator/host/cores.h"
#include "switch/ports/fd.h"

namespace ghostrank {
namespace {

std::uint64_t kib_field(const char* file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(key, 0) != 0) continue;
    std::istringstream rest(line.substr(key.size()));
    std::uint64_t kib = 0;
    rest >> kib;
    return kib * 1024;
  }
  return 0;
}

// "model name\t: AMD EPYC 7B13" -> "AMD EPYC 7B13"
std::string after_colon(const std::string& line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string::npos) return "";
  const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
  return begin == std::string::npos ? "" : line.substr(begin);
}

}  // namespace

std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    for (const char* key : {"model name", "cpu model", "cpu\t"})  // x86, MIPS, POWER
      if (line.starts_with(key)) return after_colon(line);
  return "";
}

std::string kernel_version() {
  utsname names{};
  if (uname(&names) != 0) return "";
  return std::string(names.sysname) + " " + names.release + " " + names.machine;
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::uint64_t resident_bytes() { return kib_field("/proc/self/status", "VmRSS:"); }

int usable_cores() { return std::max(1, static_cast<int>(cpus_of_this_thread().size())); }

std::string local_address_towards(const std::string& remote) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(remote.c_str(), "9", &hints, &found) != 0 || !found) return "";
  std::string address;
  const Fd probe(socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage local{};
  socklen_t length = sizeof local;
  // Connecting a datagram socket only asks the routing table; it sends nothing.
  if (connect(probe.get(), found->ai_addr, found->ai_addrlen) == 0 &&
      getsockname(probe.get(), reinterpret_cast<sockaddr*>(&local), &length) == 0) {
    std::array<char, NI_MAXHOST> text{};
    if (getnameinfo(reinterpret_cast<sockaddr*>(&local), length, text.data(), text.size(), nullptr,
                    0, NI_NUMERICHOST) == 0) {
      address = text.data();
    }
  }
  freeaddrinfo(found);
  return address;
}

}  // namespace ghostrank
