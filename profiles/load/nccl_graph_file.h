// NCCL's graph dump: the XML that a run writes with NCCL_GRAPH_DUMP_FILE, and reads with
// NCCL_GRAPH_FILE. Derived from NCCL's source (2.28.9, 2.30.7).
//
//   <graphs version="1">
//     <graph id="0" pattern="4" crossnic="2" nchannels="8" speedintra="48" speedinter="48"
//            latencyinter="0" typeintra="NVL" typeinter="PIX" samechannels="0">
//       <channel><net dev="0"/><gpu dev="0" rank="0"/> ... <net dev="1"/></channel>
//
// Graph 0 is the ring, 1 the tree, 3 NVLS; CollNet's (2, 4) are checked no further. Where GPUs have
// ranks these tell them apart, else their devices do; sorted, they are local ranks 0, 1, ... NICs
// are numbered likewise. The dump does not say which GPU it is: one with an NVLS graph is taken for
// Hopper, another for Ampere.
//
// The input is not trusted: size and counts are bounded, and what is malformed gives Error(usage)
// "FILE:LINE: what is wrong; what to do". tinyxml2 is seen by nccl_graph_file.cpp only.
//
// Threading: keeps no state.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "collectives/nccl/graphs.h"

namespace ghostrank {

inline constexpr std::size_t kMaxGraphBytes = 1 << 20;

// `file` names the text in messages.
std::shared_ptr<const NcclGraphs> parse_nccl_graphs(std::string_view text, const std::string& file);

// Does a node_template name such a file, or hold one in place, rather than name a template?
bool is_nccl_graph_file(std::string_view name);
bool is_nccl_graph_text(std::string_view name);

// The file as given, else next to the file in folder `near`. Throws Error(usage) where there is
// none.
std::string read_nccl_graph_file(const std::string& name, const std::string& near);

}  // namespace ghostrank
