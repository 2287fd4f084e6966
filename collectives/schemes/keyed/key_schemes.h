// The built-in schemes with keys (keyed/keyed.h). Threading: immutable.
#pragma once

#include <memory>

#include "collectives/agent.h"

namespace ghostrank {

// Each throws std::invalid_argument for a communicator it cannot serve.
//
// parameter_server: MXNet's kvstore dist_sync over ps-lite. A tensor of fewer than
// AtServers::big_array elements goes to server (tensor * 9973) modulo servers, a larger one to all
// in equal parts.
std::unique_ptr<Ends> parameter_server_ends(int ranks, const Communicator& comm);
// byteps: partitions of AtServers::partition_bytes (rounded up to whole pages for each local GPU),
// on the server that the hash of their key names, or so that every server gets the share of the
// best split, exactly.
std::unique_ptr<Ends> byteps_ends(int ranks, const Communicator& comm);
// phub: chunks of AtServers::chunk_bytes on servers with several NICs. Chunks of named tensors go
// longest first to NICs, and those of a machine to its cores; others by their key. The server steps
// the weights of named tensors and answers with them.
std::unique_ptr<Ends> phub_ends(int ranks, const Communicator& comm);
// phub_racks: phub with a server in every rack, which has an equal share of the nodes. Servers sum
// for their racks, and then for each other (KeyRules::racks).
std::unique_ptr<Ends> phub_racks_ends(int ranks, const Communicator& comm);

}  // namespace ghostrank
