// Network namespaces and addresses: where sockets come to life and where their packets would go.
//
// A socket belongs for ever to the namespace that its thread was in when it was made; so a
// namespace is entered to open an endpoint or a connection, and left again.
#pragma once

#include <string>

#include "switch/fd.h"

namespace ghostrank {

// The calling thread is inside from construction to destruction. An empty name stays where it is;
// one without '/' is looked for in /run/netns. Throws Error(environment) with the remedy.
class InNamespace {
 public:
  explicit InNamespace(const std::string& name);
  ~InNamespace();
  InNamespace(const InNamespace&) = delete;
  InNamespace& operator=(const InNamespace&) = delete;

 private:
  Fd home_;
};

// "gr{node}" and 3 make "gr3".
std::string namespace_of_node(const std::string& pattern, int node);

// The address of the only interface here that is up and not the loopback. Throws
// Error(environment) when there are none or several.
std::string only_address_here();

// Whether what is sent to `address` from here and now would not leave this machine's namespace (the
// kernel hands it back over lo). Asks the routing table. Throws Error(environment) when no route
// leads there.
bool is_short_cut(const std::string& address);

}  // namespace ghostrank
