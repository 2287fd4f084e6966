// The form in which plugin.cpp writes the sends of one rank, and its reader.
//
// clang-format off
//   rank 0 of 4
//   connect 3 1                        connection 3 goes to rank 1
//   mark {"func": "allreduce", ..}     a call follows (drive.py writes it, parse_call() reads it)
//   send 3 524288                      a message of 524,288 bytes on connection 3
//   mark end                           all messages of the call have been sent
// clang-format on
//
// Sends outside of calls are left out. Units: bytes. Threading: pure functions.
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

// One rank's sends in one call: its connections by target, in no order.
struct RankCall {
  std::string call;  // the mark
  std::multimap<GroupRank, Messages> sent;
};

struct RankTrace {
  int rank = 0, size = 1;
  std::vector<RankCall> calls;
};

// Throws std::runtime_error that names `name` and the line when the text is not a trace.
RankTrace read_trace(std::istream& in, const std::string& name);

// The call that a mark describes.
struct Call {
  std::string library, algorithm;
  Collective collective;  // its size is the job's; marks have none
  Communicator communicator;
};
Call parse_call(const std::string& mark, int size);

}  // namespace ghostrank::nccl_trace
