// Chooses how much of every tensor is sent, step by step, so that a step ends within a budget of
// time after its last gradients. The rule is our own.
//
//   1. A call takes   call + byte * its payload's bytes.   The first two steps, at the least ratio
//      and at ten times that, tell `call` and `byte` apart. Later `byte` is that of the last step,
//      because we expect the network to be as fast as it was then. `call` only falls: when a step's
//      calls took less than `call` each.
//      What the host adds to a byte that it stages is known, and added to `byte`.
//   2. One ratio for all tensors: the largest with which the exchanges end in time (by bisection;
//      what the stream computes and waits for is known from the plan).
//   3. Wherever the stream would then wait for the next gradients, the tensor sent before the gap
//      sends more, until the gap is full. That costs no time.
//   4. No tensor more than doubles its ratio from one step to the next: a link may pass few bytes
//      in a burst, so their time says little about the time of many bytes. Ratios are rungs of a
//      ladder (ratio_ladder.h).
//
// A change of the network is answered one step late. Threading: one owner.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "emulator/adapt/compressed_step.h"
#include "emulator/adapt/ratio_ladder.h"

namespace ghostrank {

class RatioController {
 public:
  // Bytes of a call's payload at a ratio.
  using Payload = std::function<double(const SentTensor& call, double ratio)>;

  // `step` must outlive it.
  RatioController(const CompressedStep& step, const RatioLimits& limits, Payload payload);

  // By call, for the next step.
  const std::vector<double>& ratios() const { return ratios_; }
  // Seconds that all calls of the step with ratios() took together.
  void measured(double seconds_of_calls);

 private:
  void learn(double seconds_of_calls);
  std::vector<double> wanted() const;
  // Of a call, and of the host that stages what it brings.
  double seconds_of(const SentTensor& call, double ratio) const;
  double end(std::span<const double> ratios) const;
  double bytes(std::span<const double> ratios) const;
  void fill_gaps(std::vector<double>& ratios) const;
  // The largest ratio at which the call's payload has at most `bytes`, but at least `at_least`.
  double ratio_for(const SentTensor& call, double bytes, double at_least) const;

  const CompressedStep& step_;
  RatioLimits limits_;
  RatioLadder ladder_;
  Payload payload_;
  std::vector<double> ratios_;
  int steps_ = 0;
  double first_seconds_ = 0, first_bytes_ = 0;
  double call_ = 0, byte_ = 0;  // seconds per call and per byte
};

}  // namespace ghostrank
