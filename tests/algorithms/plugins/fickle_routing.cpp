// A routing that returns another path at each call.
#include "collectives/plugin.h"

namespace {

using namespace ghostrank;

const Routing kRoutings[]{{"fickle", [](const RoutedFlow& flow) {
                             static std::uint32_t asked = 0;
                             return ++asked % flow.paths;
                           }}};

}  // namespace

GHOSTRANK_PLUGIN(kRoutings)
