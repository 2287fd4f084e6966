// The form in which plugin.cpp writes the sends of one rank, and its reader.
//
// clang-format off
//   rank 0 of 4
//   connect 3 1 0                      connection 3 goes to rank 1, from NIC 0 of rank 0's node
//   mark {"algorithm": "ring", ..}     a launch follows (drive.py writes it, parse_launch() reads it)
//   send 3 524288                      a message of 524,288 bytes on connection 3
//   mark end                           all messages of the launch have been sent
// clang-format on
//
// A launch is one ncclGroup of one or several calls. Sends outside of launches are left out. A
// trace may break off anywhere: its process was killed.
//
// Units: bytes. Threading: pure functions.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collectives/schedule.h"

namespace ghostrank::nccl_trace {

using Messages = std::vector<std::uint64_t>;  // of one connection, in order

// Where a connection goes, and the NIC of the sender's node through which it leaves, from 0; -1:
// not yet known.
struct Peer {
  GroupRank target = 0;
  int nic = -1;
  auto operator<=>(const Peer&) const = default;
};

// One rank's sends in one launch: its connections, in no order.
struct RankLaunch {
  std::string mark;
  std::multimap<Peer, Messages> sent;
};

struct RankTrace {
  int rank = 0, size = 1;
  std::vector<RankLaunch> launches;
  std::string broken_off;  // the mark of a launch that has no end
};

// Throws std::runtime_error that names `name` and the line when the text is not a trace.
RankTrace read_trace(std::istream& in, const std::string& name);

// The launch that a mark describes:
//
//   {"library": "nccl-2.28", "algorithm": "ring", "protocol": "Simple", "channels": 2,
//    "calls": [{"func": "allreduce", "count": 1000, "element_bytes": 4, "root": 0}]}
//
// Without `protocol` and `channels` they are NCCL's own choice; so is the algorithm "auto", which
// `environment` may limit ({"NCCL_ALGO": "Ring"}). Calls also take `target` (send_recv) and
// `counts` (all_to_all_v, all_gather_v), and leave out what has its default.
struct Launch {
  std::string library, algorithm;
  std::vector<Collective> calls;  // their size is the job's; marks have none
  Communicator communicator;
};
// Throws std::runtime_error when the mark describes none.
Launch parse_launch(const std::string& mark, int size);

}  // namespace ghostrank::nccl_trace
