// The part of the cluster that a slice leaves out (scale.mode: slice): plays the whole job in
// virtual time, segment by segment, and says when its messages come to the slice.
//
// Every process of a run does so for itself, before each segment, on a thread of its own, and all
// get the same.
#pragma once

#include <memory>
#include <vector>

#include "emulator/control/control.h"
#include "emulator/fabric/fabric.h"
#include "emulator/shard/shard.h"
#include "emulator/slice/crossings.h"

namespace ghostrank {

class Outside {
 public:
  // `slice`: the cluster as the run plays it. All arguments must outlive it. Throws Error(usage)
  // where what comes to the slice in the longest segment would not fit this machine's memory.
  Outside(const JobSpec& spec, const Workload& workload, const Cluster& slice);
  ~Outside();

  // What comes to the slice in the segment. Segments must be those that the slice plays, in their
  // order. The answer stays until the next call. Trouble stops the run through `control`.
  const Crossings& play(const Segment& segment, Control& control);

 private:
  const JobSpec whole_;
  const Cluster cluster_;
  const Flows flows_;
  const std::unique_ptr<Fabric> fabric_;
  CrossingRecorder recorder_;
  std::vector<std::unique_ptr<Shard>> shard_;  // the only one
  Crossings crossings_;
};

}  // namespace ghostrank
