// A placement on the nodes of servers that have none of their own.
#include "collectives/plugin.h"

namespace {

using namespace ghostrank;

const ServerPlacement kPlacements[]{{"nowhere",
                                     [](const PlacedHelper&, const ServerSites& sites) {
                                       return ServerSeat{sites.nodes, 0};
                                     },
                                     /*machines=*/false}};

}  // namespace

GHOSTRANK_PLUGIN(kPlacements)
