// A routing whose name is a built-in one's.
#include "collectives/plugin.h"

namespace {

using namespace ghostrank;

const Routing kRoutings[]{{"ecmp", [](const RoutedFlow&) { return 0u; }}};

}  // namespace

GHOSTRANK_PLUGIN(kRoutings)
