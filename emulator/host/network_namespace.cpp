#include "emulator/host/network_namespace.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>
#include <vector>

#include "emulator/host/host_facts.h"
#include "emulator/host/interfaces.h"
#include "profiles/error.h"
#include "switch/assert.h"

namespace ghostrank {
namespace {

constexpr const char* kOfThread = "/proc/thread-self/ns/net";

}  // namespace

InNamespace::InNamespace(const std::string& name) {
  if (name.empty()) return;
  const std::string path = name.find('/') == std::string::npos ? "/run/netns/" + name : name;
  const auto fail = [&](const std::string& what) {
    throw Error("network namespace '" + name + "' " + what + ": " + std::strerror(errno) +
                    "; make it (ip netns add " + name +
                    "), give it an interface, and run as root or with CAP_SYS_ADMIN",
                ErrorKind::environment);
  };
  const Fd target(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!target.is_open()) fail("cannot be opened (" + path + ")");
  home_ = Fd(open(kOfThread, O_RDONLY | O_CLOEXEC));
  if (!home_.is_open() || setns(target.get(), CLONE_NEWNET) != 0) fail("cannot be entered");
}

InNamespace::~InNamespace() {
  if (!home_.is_open()) return;
  // A thread that did not return would open its next sockets in the wrong namespace.
  GHOSTRANK_ASSERT(setns(home_.get(), CLONE_NEWNET) == 0);
}

UnnamedNamespace::UnnamedNamespace() {
  const InNamespace back(kOfThread);
  if (unshare(CLONE_NEWNET) == 0) space_ = Fd(open(kOfThread, O_RDONLY | O_CLOEXEC));
  if (!space_.is_open())
    throw Error(std::string("a network namespace cannot be made: ") + std::strerror(errno) +
                    "; run as root or with CAP_SYS_ADMIN",
                ErrorKind::environment);
}

std::string UnnamedNamespace::path() const {
  return "/proc/self/fd/" + std::to_string(space_.get());
}

std::string namespace_of_node(const std::string& pattern, Node node) {
  constexpr std::string_view kPattern = "{node}";
  std::string name = pattern;
  const std::size_t at = name.find(kPattern);
  if (at != std::string::npos) name.replace(at, kPattern.size(), to_string(node));
  return name;
}

std::string address_of_rail(int rail, int rails) {
  std::vector<Interface> usable = list_interfaces();
  std::erase_if(usable, [](const Interface& i) {
    return !i.up || i.addresses.empty() || i.addresses.front().starts_with("127.");
  });
  const std::size_t count = usable.size();
  if (count == 1) return usable[0].addresses.front();
  if (count == static_cast<std::size_t>(rails))
    return usable[static_cast<std::size_t>(rail)].addresses.front();
  throw Error((usable.empty() ? std::string("no interface has an address; give one to an interface")
                              : "several addresses could be bound: " + interfaces_text(usable)) +
                  "; choose one with fabric.bind, or give the namespace an interface for each NIC "
                  "of a node (cluster.nics_per_node)",
              ErrorKind::environment);
}

// For a destination on this machine the kernel chooses the destination itself as the source.
bool is_short_cut(const std::string& address) {
  const std::string source = local_address_towards(address);
  if (source.empty())
    throw Error("no route leads to " + address + "; add one (ip route)", ErrorKind::environment);
  return source == address;
}

}  // namespace ghostrank
