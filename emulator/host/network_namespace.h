// Network namespaces: where sockets are opened and where their packets would go.
//
// A socket belongs to the namespace of the thread that made it, for ever; so we enter a namespace
// to open an endpoint or a connection, and leave it again.
#pragma once

#include <string>

#include "collectives/common/number.h"
#include "switch/ports/fd.h"

namespace ghostrank {

// Keeps the calling thread inside a namespace from construction to destruction. An empty name means
// the present namespace; a name without '/' is looked up in /run/netns. Throws Error(environment)
// with the remedy.
class InNamespace {
 public:
  explicit InNamespace(const std::string& name);
  ~InNamespace();
  InNamespace(const InNamespace&) = delete;
  InNamespace& operator=(const InNamespace&) = delete;

 private:
  Fd home_;
};

// A network namespace without a name. It lasts as long as this object, a process or a socket in it.
class UnnamedNamespace {
 public:
  UnnamedNamespace();        // throws Error(environment) with the remedy
  std::string path() const;  // for InNamespace, in this process

 private:
  Fd space_;
};

// "gr{node}" and 3 make "gr3".
std::string namespace_of_node(const std::string& pattern, Node node);

// The address for the `rail`-th of a node's `rails` NICs in this namespace: that of the `rail`-th
// interface, by name, that is up and not the loopback, or of the only one. Throws
// Error(environment) if there are neither `rails` such interfaces nor one.
std::string address_of_rail(int rail, int rails);

// True if packets sent from here to `address` would not leave this namespace, because the kernel
// hands them back over lo. Asks the routing table. Throws Error(environment) if no route leads
// there.
bool is_short_cut(const std::string& address);

}  // namespace ghostrank
