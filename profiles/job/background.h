// Traffic besides the training's own.
//
// Threading: plain values.
#pragma once

#include <cstdint>
#include <string>

namespace ghostrank {

// Traffic besides the training's own: between ranks that train and ranks of storage nodes
// (checkpoint, data), or among ranks that train, on different nodes.
struct Background {
  enum class Pattern : std::uint8_t { checkpoint, data, incast, permutation, bisection };
  Pattern pattern = Pattern::checkpoint;
  int fan_in = 0;  // senders of an incast; 0: a rank of every other node
  int every = 1;   // period in steps; a transfer begins in its last step
  int over = 1;    // steps that share the bytes, beginning with that one
  // checkpoint: of all ranks together; data: of a sample; 0: the model's. Other patterns: of one
  // sender each time; 0: as many as the rate carries while a step computes.
  std::uint64_t bytes = 0;
  double rate_bps = 0;            // at which a rank hands its bytes over; 0: unlimited
  std::uint64_t chunk = 4 << 20;  // bytes of the largest message
  int at_once = 1;                // messages of a rank in flight
  bool blocking = false;          // begins after the step's compute, not beside it
  std::string source;             // "FILE:LINE:COL"
};

}  // namespace ghostrank
