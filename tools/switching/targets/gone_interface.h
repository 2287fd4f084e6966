// Which of a switch's interfaces is gone. Runners that are other programs receive nothing from one
// that is gone, and report no error.
//
// Threading: one owner.
#pragma once

#include <cerrno>
#include <net/if.h>
#include <string>
#include <system_error>
#include <vector>

#include "switch/ports/frame_ports.h"

namespace ghostrank {

class GoneInterface {
 public:
  static constexpr int kPatienceMs = 100;  // between calls of any()

  // Ports that are files are never gone.
  explicit GoneInterface(const std::vector<switchml::PortName>& ports) {
    for (const switchml::PortName& port : ports)
      if (!port.interface.empty())
        interfaces_.push_back({port.interface, if_nametoindex(port.interface.c_str())});
  }

  // True if one is gone, or was at an earlier call.
  bool any() {
    for (const Interface& one : interfaces_)
      if (gone_.empty() && if_nametoindex(one.name.c_str()) != one.index) gone_ = one.name;
    return !gone_.empty();
  }
  // Throws std::system_error where any() has said so.
  void check() const {
    if (!gone_.empty())
      throw std::system_error(ENODEV, std::generic_category(), "interface '" + gone_ + "' is gone");
  }

 private:
  struct Interface {
    std::string name;
    unsigned index = 0;  // a new interface of the same name has another
  };
  std::vector<Interface> interfaces_;
  std::string gone_;
};

}  // namespace ghostrank
