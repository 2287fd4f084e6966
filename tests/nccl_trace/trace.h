// The form in which plugin.cpp writes down what one rank sent, and reading it.
//
//   rank 0 of 4
//   connect 3 1                        connection 3 goes to rank 1
//   mark {"func": "all_reduce", ..}    a call follows (drive.py writes marks; CallOf reads them)
//   send 3 524288                      a message of so many bytes on connection 3
//   mark end                           everything of the call has been sent
//
// What is sent outside of calls is left out. Units: bytes. Threading: pure functions.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collectives/schedule.h"

namespace ghostrank::nccl_trace {

using Messages = std::vector<std::uint64_t>;  // of one connection in their order

// One call as one rank saw it: its connections by target, in no order.
struct RankCall {
  std::string call;  // the mark
  std::multimap<Rank, Messages> sent;
};

struct RankTrace {
  int rank = 0, size = 1;
  std::vector<RankCall> calls;
};

// Throws std::runtime_error with `name` and the line of what is no such trace.
RankTrace read_trace(std::istream& in, const std::string& name);

// What a mark describes.
struct Call {
  std::string library, algorithm;
  Collective collective;  // its size is not in the mark: that of the job
  Communicator communicator;
};
Call parse_call(const std::string& mark, int size);

}  // namespace ghostrank::nccl_trace
