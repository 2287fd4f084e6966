// The Fabric of a process that is alone: there is nobody to send to, only a wait that can be woken.
#pragma once

#include <memory>

#include "emulator/fabric/fabric.h"

namespace ghostrank {

std::unique_ptr<Fabric> make_local_fabric();

}  // namespace ghostrank
