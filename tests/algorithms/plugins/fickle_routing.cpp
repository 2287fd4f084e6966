// A routing that returns another way at each call.
#include "collectives/plugin.h"

namespace {

using namespace ghostrank;

const Routing kRoutings[]{{"fickle", [](const RoutedFlow& flow) {
                             static std::uint32_t asked = 0;
                             return ++asked % flow.ways;
                           }}};

}  // namespace

GHOSTRANK_PLUGIN(kRoutings)
