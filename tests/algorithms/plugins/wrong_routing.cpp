// A routing that counts its paths from 1.
#include "collectives/plugin.h"

namespace {

using namespace ghostrank;

const Routing kRoutings[]{{"from-one", [](const RoutedFlow& flow) {
                             return static_cast<std::uint32_t>(flow.hash % flow.paths) + 1;
                           }}};

}  // namespace

GHOSTRANK_PLUGIN(kRoutings)
