// NCCL's graph dump: the XML that NCCL writes to NCCL_GRAPH_DUMP_FILE and reads from
// NCCL_GRAPH_FILE. Derived from NCCL's source (2.28.9, 2.30.7).
//
//   <graphs version="1">
//     <graph id="0" pattern="4" crossnic="2" nchannels="8" speedintra="48" speedinter="48"
//            latencyinter="0" typeintra="NVL" typeinter="PIX" samechannels="0">
//       <channel><net dev="0"/><gpu dev="0" rank="0"/> ... <net dev="1"/></channel>
//
// Graph 0 is the ring, 1 the tree, 3 NVLS; CollNet's graphs (2, 4) are not checked further. GPUs
// are told apart by their ranks if they have any, else by their devices; in sorted order they are
// local ranks 0, 1, ... NICs are numbered likewise. The dump does not name the GPU: with an NVLS
// graph we assume Hopper, without one Ampere.
//
// The input is not trusted: size and counts are bounded, and malformed input gives Error(usage)
// "FILE:LINE: what is wrong; what to do". Only files/nccl_graph.cpp sees tinyxml2.
//
// Threading: keeps no state.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "collectives/nccl/machine/graphs.h"

namespace ghostrank {

inline constexpr std::size_t kMaxGraphBytes = 1 << 20;

// `file` is the name of the text in errors.
std::shared_ptr<const NcclGraphs> parse_nccl_graphs(std::string_view text, const std::string& file);

// True if a node_template is a dump's path or text instead of the name of a template.
bool is_nccl_graph_file(std::string_view name);
bool is_nccl_graph_text(std::string_view name);

// Looks the file up as given, then in folder `near`. Throws Error(usage) if there is none.
std::string read_nccl_graph_file(const std::string& name, const std::string& near);

}  // namespace ghostrank
