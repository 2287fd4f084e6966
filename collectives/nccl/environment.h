// NCCL's environment variables, as far as they change what NCCL sends. They are part of the job and
// never read from the process, so that a result can be repeated.
//
//   NCCL_ALGO, NCCL_PROTO                      "ring,tree", "^tree", "ring;allreduce:tree"
//   NCCL_MIN_NCHANNELS, NCCL_MAX_NCHANNELS     channels of a communicator; NCCL_MIN_CTAS and
//                                              NCCL_MAX_CTAS likewise, the tighter bound holds
//   NCCL_NTHREADS, NCCL_LL128_NTHREADS         threads per channel; decide when small calls use
//                                              fewer channels
//   NCCL_BUFFSIZE, NCCL_LL_BUFFSIZE,           bytes of a connection's FIFO
//     NCCL_LL128_BUFFSIZE
//   NCCL_P2P_NET_CHUNKSIZE                     bytes of a point-to-point message between nodes
//   NCCL_MIN_P2P_NCHANNELS,                    channels for point-to-point operations;
//     NCCL_MAX_P2P_NCHANNELS,                  NCHANNELS_PER_NET_PEER: for one peer on another
//     NCCL_NCHANNELS_PER_NET_PEER              node
//   NCCL_P2P_SCHEDULE_GROUP_SIZE               neighbouring ranks whose rounds form one group
//   NCCL_CHUNK_SIZE                            bytes of a point-to-point message, for all sizes
//   NCCL_P2P_PXN_LEVEL                         0: through the sender's own NIC; 2: through the NIC
//                                              of the peer's rail (PXN)
//   NCCL_NVLS_ENABLE, NCCL_PAT_ENABLE          0: without NVLSTree, without PAT
//   NCCL_NVLSTREE_MAX_CHUNKSIZE                bytes of a chunk
//   NCCL_CROSS_NIC, NCCL_PXN_DISABLE           restrict NCCL's topology search
//                                              (machine/search.h); a graph dump is taken to have
//                                              been found with them
//
// If NCCL would ignore or replace an invalid value, this refuses it.
//
// Units: bytes. Threading: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/nccl/settings/split.h"
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
  bool pxn = true, p2p_pxn = true;                          // for all traffic; for point-to-point
  bool nvls = true, pat = true;                             // whether NCCL may choose NVLSTree, PAT
};

// Throws std::invalid_argument, with the variable's name, for an unknown, malformed or out-of-range
// variable.
NcclSettings nccl_settings(const Environment& environment);

// Names of the variables above, for messages.
std::vector<std::string> nccl_variables();

}  // namespace ghostrank
