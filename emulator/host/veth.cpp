// Asks the kernel over rtnetlink(7): one request, one acknowledgement.
#include "emulator/host/veth.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <string_view>
#include <sys/socket.h>
#include <utility>
#include <vector>

#include "emulator/common/require_fd.h"
#include "emulator/host/network_namespace.h"
#include "profiles/error.h"

namespace ghostrank {
namespace {

constexpr std::uint32_t kMtu = 65535;  // bytes; veth's largest, so that any frame passes

// A request of rtnetlink: a header, an interface, attributes, which may hold others.
class LinkRequest {
 public:
  LinkRequest(std::uint16_t type, std::uint16_t flags) {
    nlmsghdr head{};
    head.nlmsg_type = type;
    head.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags);
    append(&head, sizeof head);
  }

  void interface(unsigned index = 0, unsigned flags = 0) {
    ifinfomsg info{};
    info.ifi_index = static_cast<int>(index);
    info.ifi_flags = info.ifi_change = flags;
    append(&info, sizeof info);
  }
  void attribute(std::uint16_t type, const void* value, std::size_t bytes) {
    const std::size_t at = open(type);
    append(value, bytes);
    close(at);
  }
  void text(std::uint16_t type, std::string_view value) {
    attribute(type, std::string(value).c_str(), value.size() + 1);
  }
  void number(std::uint16_t type, std::uint32_t value) { attribute(type, &value, sizeof value); }
  // Begins an attribute that holds all that follows until close(), called with open()'s result.
  std::size_t open(std::uint16_t type) {
    const std::size_t at = bytes_.size();
    const rtattr head{0, type};
    append(&head, sizeof head);
    return at;
  }
  void close(std::size_t at) {
    const auto length = static_cast<unsigned short>(bytes_.size() - at);
    std::memcpy(bytes_.data() + at + offsetof(rtattr, rta_len), &length, sizeof length);
    bytes_.resize(NLMSG_ALIGN(bytes_.size()));
  }

  // Sends it to the kernel, for the calling thread's namespace. Returns 0 or an errno value.
  int send() {
    const auto length = static_cast<std::uint32_t>(bytes_.size());
    std::memcpy(bytes_.data() + offsetof(nlmsghdr, nlmsg_len), &length, sizeof length);
    const Fd socket = require_fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
    sockaddr_nl kernel{};
    kernel.nl_family = AF_NETLINK;
    if (::sendto(socket.get(), bytes_.data(), bytes_.size(), 0,
                 reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel) < 0)
      return errno;
    struct {
      nlmsghdr head;
      nlmsgerr error;
    } answer{};
    if (::recv(socket.get(), &answer, sizeof answer, MSG_TRUNC) < 0) return errno;
    return -answer.error.error;
  }

 private:
  void append(const void* value, std::size_t bytes) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + bytes);
    std::memcpy(bytes_.data() + at, value, bytes);
  }

  std::vector<std::byte> bytes_;
};

int raise(const std::string& name) {
  LinkRequest request(RTM_NEWLINK, 0);
  request.interface(if_nametoindex(name.c_str()), IFF_UP);
  return request.send();
}

}  // namespace

VethCable::VethCable(End near, const End& far) : near_(std::move(near)) {
  const Fd far_space = [&] {
    const InNamespace inside(far.network_namespace);
    return require_fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  }();
  const InNamespace inside(near_.network_namespace);
  LinkRequest request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
  request.interface();
  request.text(IFLA_IFNAME, near_.name);
  request.number(IFLA_MTU, kMtu);
  const std::size_t kind = request.open(IFLA_LINKINFO);
  request.text(IFLA_INFO_KIND, "veth");
  const std::size_t data = request.open(IFLA_INFO_DATA), peer = request.open(VETH_INFO_PEER);
  request.interface();
  request.text(IFLA_IFNAME, far.name);
  request.number(IFLA_MTU, kMtu);
  request.number(IFLA_NET_NS_FD, static_cast<std::uint32_t>(far_space.get()));
  for (const std::size_t at : {peer, data, kind}) request.close(at);
  int error = request.send();
  // The kernel raises an end only when its peer exists.
  if (error == 0) error = raise(near_.name);
  if (error == 0) {
    const InNamespace there(far.network_namespace);
    error = raise(far.name);
  }
  if (error != 0)
    throw Error("the virtual interfaces " + near_.name + " and " + far.name +
                    " cannot be made: " + std::strerror(error) +
                    (error == EPERM        ? "; it needs root (CAP_NET_ADMIN)"
                     : error == EOPNOTSUPP ? "; the kernel has no veth (modprobe veth)"
                     : error == EEXIST     ? "; remove those that are left (ip link del NAME)"
                                           : ""),
                ErrorKind::environment);
}

VethCable::~VethCable() {
  try {
    const InNamespace inside(near_.network_namespace);
    const unsigned index = if_nametoindex(near_.name.c_str());
    if (index == 0) return;  // the kernel has removed it
    LinkRequest request(RTM_DELLINK, 0);
    request.interface(index);
    request.send();
  } catch (const Error&) {  // its namespace is gone, and the cable with it
  }
}

}  // namespace ghostrank
