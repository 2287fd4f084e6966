// Implements Fabric on libfabric (FI_EP_RDM endpoints). In emulator/, only files of this folder and
// fabric/libfabric.cpp include <rdma/...>.
//
// It uses a few endpoints with one completion queue, keeps wildcard receives posted, and sends our
// header in an iovec entry of its own. A message longer than kFragmentBytes travels as fragments of
// that size, so that one small scratch buffer, which stays in the cache, receives any volume. It
// uses no tags, because the engine matches messages itself.
//
// Errors and threading: as open.h says.
#pragma once

#include <memory>
#include <vector>

#include "emulator/fabric/open.h"

namespace ghostrank {

// Providers: auto | net | tcp | tcp;ofi_rxm | sockets | verbs;ofi_rxm | efa | psm3 | ...
struct OfiOptions : FabricOptions {
  // Registers all memory to send and receive (FI_MR_LOCAL) even where the provider does not demand
  // it, as verbs and efa do. Tests use it to cover that path on machines without such a provider.
  bool registered = false;
};

std::unique_ptr<NetworkFabric> open_ofi_fabric(const OfiOptions& options);
std::vector<FabricProvider> list_ofi_providers();
std::string ofi_version();

}  // namespace ghostrank
