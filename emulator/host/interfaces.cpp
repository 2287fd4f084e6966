#include "emulator/host/interfaces.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <ifaddrs.h>
#include <map>
#include <memory>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include "emulator/host/host_facts.h"
#include "profiles/error.h"
#include "profiles/input/quantity.h"

namespace ghostrank {
namespace {

// Empty for address families other than IPv4 and IPv6, and for link-local addresses.
std::string numeric(const sockaddr* address) {
  socklen_t length = 0;
  if (!address) return "";
  if (address->sa_family == AF_INET) {
    length = sizeof(sockaddr_in);
  } else if (address->sa_family == AF_INET6) {
    if (IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr))
      return "";
    length = sizeof(sockaddr_in6);
  } else {
    return "";
  }
  std::array<char, NI_MAXHOST> text{};
  if (getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0)
    return "";
  return text.data();
}

double number_in(const std::string& file, double otherwise) {
  std::ifstream in(file);
  double value = otherwise;
  return in >> value ? value : otherwise;
}

std::string rate_of(const Interface& i) {
  return i.rate_bps > 0 ? rate_text(i.rate_bps) : "rate unknown";
}

}  // namespace

std::vector<Interface> list_interfaces() {
  ifaddrs* raw = nullptr;
  if (getifaddrs(&raw) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> list(raw, &freeifaddrs);
  std::map<std::string, Interface> by_name;
  for (const int family : {AF_INET, AF_INET6, AF_PACKET}) {
    for (const ifaddrs* a = raw; a != nullptr; a = a->ifa_next) {
      if (!a->ifa_addr || a->ifa_addr->sa_family != family) continue;
      Interface& i = by_name[a->ifa_name];
      i.name = a->ifa_name;
      i.up = (a->ifa_flags & IFF_UP) != 0;
      if (std::string text = numeric(a->ifa_addr); !text.empty())
        i.addresses.push_back(std::move(text));
    }
  }
  std::vector<Interface> all;
  for (auto& [name, i] : by_name) {
    const std::string folder = "/sys/class/net/" + name;
    i.rate_bps = std::max(0.0, number_in(folder + "/speed", 0)) * 1e6;
    i.numa_node = static_cast<int>(number_in(folder + "/device/numa_node", -1));
    all.push_back(std::move(i));
  }
  return all;
}

std::string interfaces_text(const std::vector<Interface>& interfaces) {
  std::string text;
  for (const Interface& i : interfaces) {
    text += (text.empty() ? "" : ", ") + i.name + " (";
    for (const std::string& address : i.addresses) text += address + ", ";
    text += (i.addresses.empty() ? "no address, " : "") + rate_of(i) + (i.up ? "" : ", down") + ")";
  }
  return text.empty() ? "none" : text;
}

std::string address_of_device(const std::string& device, const std::string& where) {
  const std::vector<Interface> all = list_interfaces();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Interface& i) { return i.name == device; });
  std::string problem;
  if (found == all.end())
    problem = "there is no interface '" + device + "'";
  else if (!found->up)
    problem = "interface '" + device + "' is down";
  else if (found->addresses.empty())
    problem = "interface '" + device + "' has no address";
  else
    return found->addresses.front();
  throw Error(where + ": " + problem + "; there are " + interfaces_text(all),
              ErrorKind::environment);
}

std::string address_towards_any_of(const std::vector<std::string>& others) {
  constexpr char kFarAway[] = "198.51.100.1";  // reserved for examples: only the default route fits
  for (const std::string& other : others) {
    if (is_address_here(other)) continue;
    if (std::string address = local_address_towards(other); !address.empty()) return address;
  }
  if (std::string address = local_address_towards(kFarAway); !address.empty()) return address;
  std::vector<std::string> candidates;
  const std::vector<Interface> all = list_interfaces();
  for (const Interface& i : all) {
    if (i.up && !i.addresses.empty() && i.name != "lo") candidates.push_back(i.addresses.front());
  }
  if (candidates.size() == 1) return candidates.front();
  throw Error(
      "which address of this host the other processes reach cannot be told; set "
      "GHOSTRANK_ADDRESS to an address or an interface of process 0's host: " +
          interfaces_text(all),
      ErrorKind::environment);
}

bool is_address_here(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* raw = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &hints, &raw) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(raw, &freeaddrinfo);
  const std::vector<Interface> all = list_interfaces();
  for (const addrinfo* a = raw; a != nullptr; a = a->ai_next) {
    const std::string text = numeric(a->ai_addr);
    if (text.starts_with("127.")) return true;  // all of 127/8 is this machine
    for (const Interface& i : all) {
      if (std::find(i.addresses.begin(), i.addresses.end(), text) != i.addresses.end()) return true;
    }
  }
  return false;
}

}  // namespace ghostrank
