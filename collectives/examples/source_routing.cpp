// A routing of your own as a plug-in: it chooses the spine of a connection by the source NIC. The
// NICs of a leaf are dealt out over the spines. If each NIC sends to one other, as in a ring or a
// shift, the uplinks share the load evenly.
//
//   NIC 0 ─┐        ┌─ spine 0      NIC 0 -> spine 0
//   NIC 1 ─┤  leaf ─┤               NIC 1 -> spine 1      a hash may put both on one spine
//   NIC 2 ─┘        └─ spine 1      NIC 2 -> spine 0
//
// Build it with the CMakeLists.txt beside it; in a job
//   collectives: {plugins: [source_routing.so]}
//   cluster: {topology: {kind: leaf_spine, routing: by-source}}
#include "collectives/plugin.h"

namespace {

using namespace ghostrank;

std::uint32_t by_source(const RoutedFlow& flow) {
  return static_cast<std::uint32_t>(flow.source_nic.index() % flow.paths);
}

const Routing kRoutings[]{{"by-source", by_source}};

}  // namespace

GHOSTRANK_PLUGIN(kRoutings)
