// The factory of real fabrics: what endpoints and flows are wanted, told alike for every kind, and
// what was opened. Nothing outside this folder knows which library is behind it.
//
// A further kind is a value of FabricKind with its word in the job's fabric.kind, a file here with
// its functions, and their row in open.cpp.
//
// Errors: Error(environment) naming provider, address and remedy. Threading: what is opened belongs
// to one thread, as fabric.h says; the functions may be called from any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "emulator/fabric/fabric.h"
#include "profiles/job/job.h"

namespace ghostrank {

struct EndpointBinding {
  std::string address;            // local address to bind; empty: any
  std::string network_namespace;  // in which its sockets live; empty: the thread's own
};

struct FabricOptions {
  std::string provider = "auto";  // as fabric.provider of a job
  std::vector<EndpointBinding> endpoints = std::vector<EndpointBinding>(1);  // at least one
  std::uint64_t nonce = 0;
  bool keep_payload = false;      // verify mode: give every arrived message its bytes
  std::uint64_t frame_bytes = 0;  // small messages of a flow share frames of this size; 0: never
};

// One flow as its owner here sees it. Its other end sees the same flow under a number of its own.
struct FabricFlow {
  int endpoint = 0;               // of ours
  std::string address;            // of the endpoint at the other end
  std::string name;               // of who is there, for messages: "host 1"
  std::uint32_t their_index = 0;  // of this flow among theirs
};

// A Fabric between processes.
class NetworkFabric : public Fabric {
 public:
  virtual const std::string& provider() const = 0;      // resolved: "net"
  virtual const std::string& transport() const = 0;     // "tcp-cubic", "tcp-bbr", "verbs", ...
  virtual std::string address(int endpoint) const = 0;  // opaque bytes to give to the others
  // Flow i is `flows[i]` from now on; called once, before any try_send. The first message of a flow
  // opens its connection, in the namespace of the endpoint it leaves from.
  virtual void connect(const std::vector<FabricFlow>& flows) = 0;
};

// The kinds there are: those that is_network() is true of.
std::vector<FabricKind> network_kinds();

// Opens the endpoints and makes them ready to receive.
std::unique_ptr<NetworkFabric> open_fabric(FabricKind kind, const FabricOptions& options);

// One provider of this machine, for `doctor`.
struct FabricProvider {
  std::string name, version, fabric, domain;
  bool waitable = false;  // there is something to block on until a message arrives
  std::string unsafe;     // why it is not offered; empty: it is
};
std::vector<FabricProvider> list_fabric_providers(FabricKind kind);

}  // namespace ghostrank
