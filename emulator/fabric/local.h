// The Fabric of a process without peers: it sends nothing, and only provides a wait() that wake()
// ends.
//
// Errors: Error(environment) when no descriptor can be opened. Threading: as fabric.h says.
#pragma once

#include <memory>

#include "emulator/fabric/fabric.h"

namespace ghostrank {

std::unique_ptr<Fabric> make_local_fabric();

}  // namespace ghostrank
