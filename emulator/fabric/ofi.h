// libfabric (FI_EP_RDM) as a Fabric. The only place, with ofi.cpp, that includes <rdma/...>.
//
// One endpoint per shard, wildcard receives always posted, our header in an iovec slot of its own,
// our own matching (in the engine). Messages longer than kFragmentBytes travel as fragments of that
// size, so that one small cache-hot scratch buffer receives any volume. The engine's matching makes
// tags unnecessary.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "emulator/fabric/fabric.h"

namespace ghostrank {

inline constexpr std::uint64_t kFragmentBytes = 1 << 20;

struct OfiOptions {
  std::string provider =
      "auto";  // auto | net | tcp | tcp;ofi_rxm | sockets | verbs;ofi_rxm | efa | psm3 | ...
  std::string bind_address;  // local address to bind; empty: the one that routes to the rendezvous
  std::uint64_t nonce = 0;
  bool keep_payload = false;  // verify mode: give every arrived message its bytes
};

// One provider of this machine, for `doctor`.
struct OfiProvider {
  std::string name, version, fabric, domain;
  bool waitable = false;  // its completion queue has a pollable descriptor
};
std::vector<OfiProvider> list_ofi_providers();

class OfiFabric : public Fabric {
 public:
  // Opens the endpoint and posts receives. Throws Error(environment) naming provider, address and
  // remedy.
  static std::unique_ptr<OfiFabric> open(const OfiOptions& options);

  virtual const std::string& provider() const = 0;   // resolved: "net"
  virtual const std::string& transport() const = 0;  // "tcp-cubic", "tcp-bbr", "verbs", ...
  virtual std::string address() const = 0;           // opaque bytes to give to the other processes
  // Makes `addresses[h]` reachable as host h; called once, before any try_send.
  virtual void connect(const std::vector<std::string>& addresses, int self) = 0;
};

}  // namespace ghostrank
