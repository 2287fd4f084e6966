// Opens what libfabric needs before a message can flow: chooses a provider, opens fabric, domain,
// completion queue and address vector, and names the cause when that fails. Private to ofi/.
//
// Handles close in reverse order of declaration: declare an endpoint or a memory region after the
// OfiDomain and the buffers that it uses.
//
// Errors: Error(environment) that names provider, address and remedy. Threading: any thread opens;
// then one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include "emulator/fabric/ofi/ofi.h"

namespace ghostrank {

struct FidCloser {
  template <class F>
  void operator()(F* handle) const {
    fi_close(&handle->fid);
  }
};
template <class F>
using Fid = std::unique_ptr<F, FidCloser>;

struct InfoFreer {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, InfoFreer>;

struct OfiDomain {
  Info info;
  Fid<fid_fabric> fabric;
  Fid<fid_domain> domain;
  Fid<fid_av> av;
  Fid<fid_cq> cq;
  int wait_fd = -1;  // the queue's descriptor; -1: the provider has none

  std::string provider() const { return info->fabric_attr->prov_name; }
  bool needs_registration() const {
    return (info->domain_attr->mr_mode & FI_MR_LOCAL) != 0 || (info->mode & FI_LOCAL_MR) != 0;
  }
};

struct OfiEndpoint {
  Info info;
  Fid<fid_ep> handle;
};

// Opens everything, and binds and enables the endpoints too, because only there a provider shows
// that it cannot bind to an address. All endpoints share one domain, queue and address vector.
struct OfiOpened {
  OfiDomain domain;
  std::vector<OfiEndpoint> endpoints;
};
OfiOpened open_ofi(const OfiOptions& options);

// Registers memory where the provider demands it; elsewhere `region` stays empty. Returns
// libfabric's status (0: done).
int register_memory(const OfiDomain& domain, const void* memory, std::size_t bytes,
                    std::uint64_t access, Fid<fid_mr>& region);
inline void* descriptor(const Fid<fid_mr>& region) {
  return region ? fi_mr_desc(region.get()) : nullptr;
}

// Returns the binding as text for error messages: "address 10.0.0.1".
std::string bind_text(const EndpointBinding& binding);

}  // namespace ghostrank
