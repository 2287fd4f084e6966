// A placement that chooses a server's own node, although with machines=false there are none.
#include "collectives/plugin.h"

namespace {

using namespace ghostrank;

const ServerPlacement kPlacements[]{{"nowhere",
                                     [](const PlacedHelper&, const ServerSites& sites) {
                                       return ServerLocation{sites.nodes, 0};
                                     },
                                     /*machines=*/false}};

}  // namespace

GHOSTRANK_PLUGIN(kPlacements)
