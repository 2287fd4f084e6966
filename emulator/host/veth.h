// A cable: two virtual Ethernet interfaces (veth), each in a network namespace, and what enters one
// leaves the other. Both are up and without addresses. It lasts as long as this object, or until
// the kernel removes one of the namespaces.
//
// Errors: Error(environment) with the remedy; it needs CAP_NET_ADMIN. Threading: one owner; its
// calls leave the thread in the namespace in which it was.
#pragma once

#include <string>

namespace ghostrank {

class VethCable {
 public:
  struct End {
    std::string name;               // at most 15 characters
    std::string network_namespace;  // as InNamespace takes it
  };
  VethCable(End near, const End& far);
  ~VethCable();
  VethCable(const VethCable&) = delete;
  VethCable& operator=(const VethCable&) = delete;

 private:
  End near_;
};

}  // namespace ghostrank
