// libfabric (FI_EP_RDM) as a Fabric. The only place, with ofi_*.{h,cpp}, that includes <rdma/...>.
//
// A few endpoints, one completion queue, wildcard receives always posted, our header in an iovec
// slot of its own, our own matching (in the engine). Messages longer than kFragmentBytes travel as
// fragments of that size, so that one small cache-hot scratch buffer receives any volume. The
// engine's matching makes tags unnecessary.
#pragma once

#include <memory>
#include <vector>

#include "emulator/fabric/open.h"

namespace ghostrank {

// Providers: auto | net | tcp | tcp;ofi_rxm | sockets | verbs;ofi_rxm | efa | psm3 | ...
struct OfiOptions : FabricOptions {
  // Registers what is sent and received (FI_MR_LOCAL) also where the provider does not demand it,
  // as verbs and efa do: how that path is tested on machines without them.
  bool registered = false;
};

std::unique_ptr<NetworkFabric> open_ofi_fabric(const OfiOptions& options);
std::vector<FabricProvider> list_ofi_providers();

}  // namespace ghostrank
