// NCCL's environment variables, as far as they change what is sent. They are part of the job, never
// taken from the process, so that a result can be repeated.
//
//   NCCL_ALGO, NCCL_PROTO                      "ring,tree", "^tree", "ring;allreduce:tree"
//   NCCL_MIN_NCHANNELS, NCCL_MAX_NCHANNELS     channels of a communicator; NCCL_MIN_CTAS and
//                                              NCCL_MAX_CTAS likewise, the tighter one counts
//   NCCL_NTHREADS, NCCL_LL128_NTHREADS         threads of a channel: when small calls drop channels
//   NCCL_BUFFSIZE, NCCL_LL_BUFFSIZE,           bytes of a connection's FIFO
//     NCCL_LL128_BUFFSIZE
//   NCCL_P2P_NET_CHUNKSIZE                     bytes of a point-to-point message between nodes
//   NCCL_MIN_P2P_NCHANNELS,                    channels for point-to-point, and of them for one
//     NCCL_MAX_P2P_NCHANNELS,                  peer on another node
//     NCCL_NCHANNELS_PER_NET_PEER
//   NCCL_P2P_SCHEDULE_GROUP_SIZE               neighbours that go through rounds together
//   NCCL_CHUNK_SIZE                            bytes of a point-to-point message, whatever the call
//   NCCL_P2P_PXN_LEVEL                         0: by the sender's own NIC; 2: that of the peer's
//                                              rail (PXN)
//   NCCL_NVLS_ENABLE, NCCL_PAT_ENABLE          0: without NVLSTree, without PAT
//   NCCL_NVLSTREE_MAX_CHUNKSIZE                bytes of a chunk
//   NCCL_CROSS_NIC, NCCL_PXN_DISABLE           what the search may do; only where the kind of node
//                                              was found with it
//
// Where NCCL ignores a value that makes no sense, or replaces it, this refuses it.
//
// Units: bytes. Threading: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/nccl/split.h"
#include "collectives/nccl/tuner.h"
#include "collectives/schedule.h"

namespace ghostrank {

struct NcclSettings {
  NcclOverrides tuner;
  NcclBuffers buffers;
  std::int64_t min_ctas = 0, max_ctas = 0;                  // 0: not set
  std::int64_t min_channels = 0, max_channels = 0;          // 0: not set
  std::int64_t min_p2p_channels = 0, max_p2p_channels = 0;  // 0: not set
  std::int64_t net_peer_channels = 0, net_chunk_bytes = 0;  // 0: not set
  std::int64_t p2p_message_bytes = 0;                       // 0: not set
  int p2p_group = 8;                                        // at most 8
  std::int64_t cross_nic = -1;                              // -1: not set
  bool pxn = true, p2p_pxn = true;                          // anywhere at all; for point-to-point
  bool nvls = true, pat = true;                             // may be chosen
};

// Throws std::invalid_argument, with the variable's name, for one that is unknown, malformed or out
// of bounds.
NcclSettings nccl_settings(const Environment& environment);

// Names of the variables above, for messages.
std::vector<std::string> nccl_variables();

}  // namespace ghostrank
