// libfabric (FI_EP_RDM) as a Fabric. The only place, with ofi_*.{h,cpp}, that includes <rdma/...>.
//
// A few endpoints, one completion queue, wildcard receives always posted, our header in an iovec
// slot of its own, our own matching (in the engine). Messages longer than kFragmentBytes travel as
// fragments of that size, so that one small cache-hot scratch buffer receives any volume. The
// engine's matching makes tags unnecessary.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "emulator/fabric/fabric.h"

namespace ghostrank {

inline constexpr std::uint64_t kFragmentBytes = 1 << 20;

struct OfiBinding {
  std::string address;            // local address to bind; empty: any
  std::string network_namespace;  // in which its sockets live; empty: the thread's own
};

struct OfiOptions {
  std::string provider =
      "auto";  // auto | net | tcp | tcp;ofi_rxm | sockets | verbs;ofi_rxm | efa | psm3 | ...
  std::vector<OfiBinding> endpoints = std::vector<OfiBinding>(1);  // at least one
  std::uint64_t nonce = 0;
  bool keep_payload = false;      // verify mode: give every arrived message its bytes
  std::uint64_t frame_bytes = 0;  // small messages of a flow share frames of this size; 0: never
  // Registers what is sent and received (FI_MR_LOCAL) also where the provider does not demand it,
  // as verbs and efa do: how that path is tested on machines without them.
  bool registered = false;
};

// One flow as its owner here sees it. Its other end sees the same flow under a number of its own.
struct OfiFlow {
  int endpoint = 0;               // of ours
  std::string address;            // of the endpoint at the other end
  std::string name;               // of who is there, for messages: "host 1"
  std::uint32_t their_index = 0;  // of this flow among theirs
};

// One provider of this machine, for `doctor`.
struct OfiProvider {
  std::string name, version, fabric, domain;
  bool waitable = false;  // its completion queue has a pollable descriptor
};
std::vector<OfiProvider> list_ofi_providers();

class OfiFabric : public Fabric {
 public:
  // Opens the endpoints and posts receives. Throws Error(environment) naming provider, address and
  // remedy.
  static std::unique_ptr<OfiFabric> open(const OfiOptions& options);

  virtual const std::string& provider() const = 0;      // resolved: "net"
  virtual const std::string& transport() const = 0;     // "tcp-cubic", "tcp-bbr", "verbs", ...
  virtual std::string address(int endpoint) const = 0;  // opaque bytes to give to the others
  // Flow i is `flows[i]` from now on; called once, before any try_send. The first message of a flow
  // opens its connection, in the namespace of the endpoint it leaves from.
  virtual void connect(const std::vector<OfiFlow>& flows) = 0;
};

}  // namespace ghostrank
