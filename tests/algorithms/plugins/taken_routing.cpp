// A routing with the name of a built-in one.
#include "collectives/plugin.h"

namespace {

using namespace ghostrank;

const Routing kRoutings[]{{"ecmp", [](const RoutedFlow&) { return 0u; }}};

}  // namespace

GHOSTRANK_PLUGIN(kRoutings)
