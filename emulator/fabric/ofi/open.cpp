#include "emulator/fabric/ofi/open.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include <rdma/fi_errno.h>

#include "emulator/host/network_namespace.h"
#include "profiles/error.h"

namespace ghostrank {
namespace {

constexpr std::uint32_t kApi = FI_VERSION(1, 17);
constexpr std::size_t kQueueEntries = 4096;

// `registered`: asks a provider that does not demand registered memory for the old basic mode, in
// which it accepts and uses registered memory.
Info make_hints(const std::string& provider, bool registered) {
  Info hints(fi_allocinfo());
  if (!hints) throw Error("out of memory", ErrorKind::environment);
  hints->ep_attr->type = FI_EP_RDM;
  hints->caps = FI_MSG;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;  // every slot starts with a context
  hints->tx_attr->msg_order = FI_ORDER_SAS;
  hints->rx_attr->msg_order = FI_ORDER_SAS;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  if (registered) {
    hints->mode |= FI_LOCAL_MR;
    hints->domain_attr->mr_mode = FI_MR_BASIC;
  }
  if (!provider.empty()) hints->fabric_attr->prov_name = strdup(provider.c_str());
  return hints;
}

// Returns the matching providers; null: there is none, and `status` says why.
Info get_info(const std::string& provider, const std::string& node, bool registered, int& status) {
  const Info hints = make_hints(provider, registered);
  fi_info* list = nullptr;
  status = fi_getinfo(kApi, node.empty() ? nullptr : node.c_str(), nullptr,
                      node.empty() ? 0 : FI_SOURCE, hints.get(), &list);
  return Info(status == 0 ? list : nullptr);
}

bool speaks_ip(const fi_info& info) {
  return info.addr_format == FI_SOCKADDR || info.addr_format == FI_SOCKADDR_IN ||
         info.addr_format == FI_SOCKADDR_IN6;
}

// Returns the entry of exactly the wanted provider, else the first one layered over it ("tcp" on
// libfabric 1.17 is "tcp;ofi_rxm").
Info best_of(const Info& list, const std::string& provider) {
  const fi_info* best = nullptr;
  for (const fi_info* i = list.get(); i != nullptr; i = i->next) {
    const std::string_view name = i->fabric_attr->prov_name;
    if (name == provider) {
      best = i;
      break;
    }
    if (best == nullptr && name.starts_with(provider + ";")) best = i;
  }
  return Info(best != nullptr ? fi_dupinfo(best) : nullptr);
}

constexpr char kWhyNoShm[] = "it has nothing to wait on and reaches no other host";

// Returns why a provider is not offered; empty: it is. Messages that others send to its ports must
// not end a process.
std::string why_unsafe(std::string_view provider) {
  if (provider == "shm") return kWhyNoShm;
  if (provider.find("ofi_rxd") == std::string_view::npos) return "";
  return "a few stray datagrams end the process";
}

// Providers layered over TCP: in 1 of 28 tries a process that was stopped for 60 s (SIGSTOP) died
// inside the provider when it continued. The other processes notice and end the run.
std::string caution_of(std::string_view provider) {
  if (provider != "tcp;ofi_rxm" && provider != "net;ofi_rxm") return "";
  return "may end a process that was stopped for a minute; net does not";
}

std::string offered_here() {
  std::vector<std::string> names;
  std::string text;
  for (const FabricProvider& p : list_ofi_providers()) {
    if (!p.unsafe.empty()) continue;
    if (std::find(names.begin(), names.end(), p.name) != names.end()) continue;
    text += (names.empty() ? "" : ", ") + p.name;
    names.push_back(p.name);
  }
  return text.empty() ? "no provider at all" : text;
}

[[noreturn]] void throw_unusable(const std::string& provider, const EndpointBinding& binding,
                                 const std::string& what, int status) {
  throw Error("libfabric provider '" + provider + "' cannot be used on " + bind_text(binding) +
                  ": " + what + ": " + fi_strerror(std::abs(status)) + "; this machine offers " +
                  offered_here() +
                  "; choose one with fabric.provider, and a local address with fabric.bind",
              ErrorKind::environment);
}

Info select(const std::string& provider, const EndpointBinding& binding, bool registered) {
  int status = 0;
  Info list = get_info(provider, binding.address, registered, status);
  Info info = best_of(list, provider);
  if (!info && !binding.address.empty()) {
    // Providers with their own address format (efa, psm3, shm) do not know IP addresses.
    int unbound = 0;
    list = get_info(provider, "", registered, unbound);
    info = best_of(list, provider);
    if (info && speaks_ip(*info)) info.reset();
  }
  if (!info)
    throw_unusable(provider, binding, "no reliable datagram endpoint",
                   status != 0 ? status : -FI_ENODATA);
  const std::string name = info->fabric_attr->prov_name;
  if (const std::string why = why_unsafe(name); !why.empty())
    throw Error("libfabric provider '" + name + "' is not offered: " + why + "; choose one of " +
                    offered_here() + " with fabric.provider",
                ErrorKind::environment);
  if (registered) info->mode |= FI_LOCAL_MR;
  return info;
}

template <class F, class Open>
Fid<F> opened(const std::string& provider, const EndpointBinding& binding, const char* what,
              Open open) {
  F* handle = nullptr;
  if (const int status = open(&handle); status != 0)
    throw_unusable(provider, binding, what, status);
  return Fid<F>(handle);
}

// Provider net of 1.17 signals each completion by a byte in a socket pair, which is in the queue's
// epoll set. It removes the byte only in fi_cq_sread, never in fi_trywait, so after the first
// completion the queue's descriptor is readable for ever. The set's other member is the epoll set
// of the provider's sockets, and that tells a single-threaded owner enough. Returns that member, or
// `wait_fd` where the set looks different.
int descriptor_of_sockets(int wait_fd) {
  std::ifstream set("/proc/self/fdinfo/" + std::to_string(wait_fd));
  int found = wait_fd;
  for (std::string word; set >> word;) {
    int member = 0;
    if (word != "tfd:" || !(set >> member)) continue;
    std::error_code error;
    const auto kind =
        std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(member), error);
    if (error || kind != "anon_inode:[eventpoll]") continue;
    if (found != wait_fd) return wait_fd;  // two of them: not the set described above
    found = member;
  }
  return found;
}

// Opens a queue, with a pollable descriptor where the provider has one.
void open_queue(OfiDomain& d, const EndpointBinding& binding) {
  fi_cq_attr attr{};
  attr.size = kQueueEntries;
  attr.format = FI_CQ_FORMAT_MSG;
  attr.wait_obj = FI_WAIT_FD;
  fid_cq* queue = nullptr;
  if (fi_cq_open(d.domain.get(), &attr, &queue, nullptr) == 0) {
    d.cq.reset(queue);
    if (fi_control(&queue->fid, FI_GETWAIT, &d.wait_fd) == 0) return;
    d.wait_fd = -1;
    d.cq.reset();
  }
  attr.wait_obj = FI_WAIT_NONE;
  d.cq = opened<fid_cq>(d.provider(), binding, "opening a completion queue", [&](fid_cq** out) {
    return fi_cq_open(d.domain.get(), &attr, out, nullptr);
  });
}

OfiDomain open_domain(const std::string& wanted, const OfiOptions& options) {
  const EndpointBinding& binding = options.endpoints.front();
  const InNamespace inside(binding.network_namespace);
  OfiDomain d;
  d.info = select(wanted, binding, options.registered);
  const std::string name = d.provider();
  d.fabric = opened<fid_fabric>(name, binding, "opening the fabric", [&](fid_fabric** out) {
    return fi_fabric(d.info->fabric_attr, out, nullptr);
  });
  d.domain = opened<fid_domain>(name, binding, "opening the domain", [&](fid_domain** out) {
    return fi_domain(d.fabric.get(), d.info.get(), out, nullptr);
  });
  fi_av_attr av{};
  av.type = d.info->domain_attr->av_type == FI_AV_UNSPEC ? FI_AV_MAP : d.info->domain_attr->av_type;
  d.av = opened<fid_av>(name, binding, "opening the address vector", [&](fid_av** out) {
    return fi_av_open(d.domain.get(), &av, out, nullptr);
  });
  open_queue(d, binding);
  return d;
}

OfiEndpoint open_endpoint(const OfiDomain& d, const EndpointBinding& binding) {
  const InNamespace inside(binding.network_namespace);
  const std::string name = d.provider();
  OfiEndpoint e{select(name, binding, d.needs_registration()), nullptr};
  e.handle = opened<fid_ep>(name, binding, "opening an endpoint", [&](fid_ep** out) {
    return fi_endpoint(d.domain.get(), e.info.get(), out, nullptr);
  });
  const auto check = [&](const char* what, int status) {
    if (status != 0) throw_unusable(name, binding, what, status);
  };
  check("binding the address vector", fi_ep_bind(e.handle.get(), &d.av->fid, 0));
  check("binding the queue", fi_ep_bind(e.handle.get(), &d.cq->fid, FI_TRANSMIT | FI_RECV));
  check("enabling an endpoint", fi_enable(e.handle.get()));
  return e;
}

OfiOpened open_provider(const std::string& wanted, const OfiOptions& options) {
  OfiOpened o;
  o.domain = open_domain(wanted, options);
  for (const EndpointBinding& binding : options.endpoints)
    o.endpoints.push_back(open_endpoint(o.domain, binding));
  OfiDomain& d = o.domain;
  if (d.provider() == "net" && d.wait_fd >= 0) d.wait_fd = descriptor_of_sockets(d.wait_fd);
  return o;
}

// Returns whether a provider is known to have a pollable descriptor, without opening it;
// open_queue() finds out for itself.
bool known_waitable(std::string_view name) {
  const std::string_view core = name.substr(0, name.find(';'));
  constexpr std::string_view kWaitable[] = {"net", "tcp", "sockets", "verbs"};
  return std::find(std::begin(kWaitable), std::end(kWaitable), core) != std::end(kWaitable);
}

}  // namespace

std::string bind_text(const EndpointBinding& binding) {
  std::string text = binding.address.empty() ? "any local address" : "address " + binding.address;
  if (!binding.network_namespace.empty())
    text += " in network namespace " + binding.network_namespace;
  return text;
}

OfiOpened open_ofi(const OfiOptions& options) {
  if (options.provider.substr(0, options.provider.find(';')) == "shm")
    throw Error(std::string("libfabric provider 'shm' cannot be used: ") + kWhyNoShm +
                    "; choose another with fabric.provider",
                ErrorKind::environment);
  if (options.provider != "auto") return open_provider(options.provider, options);
  // libfabric calls native reliable datagrams over TCP "net" before 1.18, and "tcp" from then on.
  constexpr const char* kPreferred[] = {"net", "tcp", "tcp;ofi_rxm", "sockets"};
  std::string reasons;
  for (const char* provider : kPreferred) {
    try {
      return open_provider(provider, options);
    } catch (const Error& e) {
      if (reasons.empty()) reasons = e.what();
    }
  }
  throw Error("none of net, tcp, tcp;ofi_rxm and sockets works: " + reasons,
              ErrorKind::environment);
}

int register_memory(const OfiDomain& domain, const void* memory, std::size_t bytes,
                    std::uint64_t access, Fid<fid_mr>& region) {
  if (!domain.needs_registration() || bytes == 0) return 0;
  // With FI_MR_PROV_KEY the provider chooses the key; without it the keys of a domain must differ.
  static std::atomic<std::uint64_t> next_key{1};
  fid_mr* handle = nullptr;
  const int status =
      fi_mr_reg(domain.domain.get(), memory, bytes, access, 0,
                next_key.fetch_add(1, std::memory_order_relaxed), 0, &handle, nullptr);
  if (status == 0) region.reset(handle);
  return status;
}

std::string ofi_version() {
  const std::uint32_t version = fi_version();
  return std::to_string(FI_MAJOR(version)) + "." + std::to_string(FI_MINOR(version));
}

std::vector<FabricProvider> list_ofi_providers() {
  std::vector<FabricProvider> found;
  int status = 0;
  const Info list = get_info("", "", false, status);
  for (const fi_info* i = list.get(); i != nullptr; i = i->next) {
    FabricProvider p;
    p.name = i->fabric_attr->prov_name;
    p.version = std::to_string(FI_MAJOR(i->fabric_attr->prov_version)) + "." +
                std::to_string(FI_MINOR(i->fabric_attr->prov_version));
    p.fabric = i->fabric_attr->name != nullptr ? i->fabric_attr->name : "";
    p.domain = i->domain_attr->name != nullptr ? i->domain_attr->name : "";
    p.waitable = known_waitable(p.name);
    p.unsafe = why_unsafe(p.name);
    p.caution = caution_of(p.name);
    const bool seen = std::any_of(found.begin(), found.end(), [&](const FabricProvider& other) {
      return other.name == p.name && other.fabric == p.fabric && other.domain == p.domain;
    });
    if (!seen) found.push_back(std::move(p));
  }
  return found;
}

}  // namespace ghostrank
