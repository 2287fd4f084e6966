// The factory of real fabrics: describes the endpoints and flows that a job wants, alike for every
// kind, and opens them. Code outside this folder does not know which library serves them.
//
// To add a kind: add a value to FabricKind with its word in the job's fabric.kind, a file here with
// its functions, and its row in open.cpp.
//
// Errors: Error(environment) that names provider, address and remedy. Threading: any thread may
// call the functions; an opened fabric belongs to one thread, as fabric.h says.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "emulator/fabric/fabric.h"
#include "emulator/fabric/send_cap.h"
#include "profiles/job/job.h"

namespace ghostrank {

struct EndpointBinding {
  std::string address;                     // local address to bind to; empty: any
  std::string network_namespace;           // that its sockets belong to; empty: the thread's own
  std::shared_ptr<SendCap> cap = nullptr;  // on what they send; null: none
  int dscp = -1;                           // kind packets: of what they send; -1: the kernel's
};

struct FabricOptions {
  std::string provider = "auto";  // as fabric.provider in a job
  std::vector<EndpointBinding> endpoints = std::vector<EndpointBinding>(1);  // at least one
  std::uint64_t nonce = 0;
  std::uint32_t mtu = 1500;       // kind packets: bytes of the largest IP packet
  bool keep_payload = false;      // verify mode and agents: give every arrived message its bytes
  std::uint64_t frame_bytes = 0;  // small messages of a flow share frames of this size; 0: never
};

// One flow as this end sees it. The other end knows the same flow under its own number.
struct FabricFlow {
  int endpoint = 0;               // index of our endpoint
  std::string address;            // of the endpoint at the other end
  std::string name;               // of the process there, for error messages: "host 1"
  std::uint32_t their_index = 0;  // this flow's number there
};

// A Fabric between processes.
class NetworkFabric : public Fabric {
 public:
  virtual const std::string& provider() const = 0;      // the one in use: "net"
  virtual const std::string& transport() const = 0;     // "tcp-cubic", "tcp-bbr", "verbs", ...
  virtual std::string address(int endpoint) const = 0;  // opaque bytes for the other processes
  // Flow i is `flows[i]` from now on. Call it once, before any try_send. The first message of a
  // flow opens its connection, in the namespace of the endpoint that it leaves from.
  virtual void connect(const std::vector<FabricFlow>& flows) = 0;
};

// Returns the kinds of this build that choose among providers.
std::vector<FabricKind> network_kinds();

// Throws Error(environment) where this build does not have the kind, as open_fabric() does.
void check_fabric_built(FabricKind kind);

// Opens the endpoints and makes them ready to receive.
std::unique_ptr<NetworkFabric> open_fabric(FabricKind kind, const FabricOptions& options);

// One provider of this machine, for `doctor`.
struct FabricProvider {
  std::string name, version, fabric, domain;
  bool waitable = false;  // a thread can block until a message arrives
  std::string unsafe;     // why it is not offered; empty: it is offered
  std::string caution;    // a fault that was seen with it; empty: none
};
std::vector<FabricProvider> list_fabric_providers(FabricKind kind);

// Returns the version of the library behind the kind: "1.17" for libfabric; empty: none.
std::string fabric_library_version(FabricKind kind);

}  // namespace ghostrank
