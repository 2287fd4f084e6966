// What ranks carry from one iteration to the next in verify mode
// (profiles/training/gradient_state.h), and the tensors that each gave to exchanges under way. A
// rank compresses the tensor that its own state asks for, and updates the state with the data that
// it receives; the other ranks check the data that they receive against its tensor.
//
//   start of a call   give(): the rank's tensor, for others to see     (own thread)
//   end of a call     given(): others'; finish(): its own state        (own thread)
//
// A rank ends an exchange after all others that send something have begun it; begun() tells whether
// the rest have. All have ended it before any sends its payload in the next exchange of that
// tensor, because ranks tell each other the lengths of their payloads first. So the tensors of two
// iterations are kept. All ranks are in one process.
//
// Units: elements. Threading: begin_segment() and training() while nobody plays; the others on the
// thread that plays the rank.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "emulator/result/result.h"
#include "profiles/training/gradient_state.h"

namespace ghostrank {

// One rank's part in the exchange of a tensor.
struct ExchangeOf {
  std::uint32_t tensor = 0, iteration = 0;
  GroupRank rank = 0;
};

class GradientStates {
 public:
  GradientStates(const JobSpec& spec, const Workload& workload);

  // The segment plays iterations from `first` on. If the one before did so too, as a second warm-up
  // does, all ranks return to the states that they had then.
  void begin_segment(std::uint32_t first);
  // What ranks learned in all iterations so far; empty if nothing is learned.
  std::optional<TrainingUse> training();

  // The tensor that the rank compresses: made when it is first asked for in an iteration, of
  // `gradient` or, where the rank learns a task, of the task's gradient.
  std::span<const float> give(const ExchangeOf& of, std::vector<float> gradient);
  bool begun(const ExchangeOf& of);                    // whether the rank has given it
  std::span<const float> given(const ExchangeOf& of);  // the rank must have begun
  // Ends the rank's exchange. `sum`: of all ranks' tensors as decompressed; `own`: its own part.
  void finish(const ExchangeOf& of, std::span<const float> own, std::span<const float> sum,
              bool vote);

  // In an exchange of several calls: what the rank received so far, `before` and now.
  void receive(const ExchangeOf& of, std::span<const std::byte> before,
               std::span<const std::byte> now);
  std::span<const std::byte> received(const ExchangeOf& of) const;

  // Keeps the payload that the rank gathered from another one, decompressed.
  void hear(const ExchangeOf& of, GroupRank from, std::vector<float> tensor);
  // By rank; null: some are missing. Valid until the rank hears of the tensor again.
  const std::vector<std::vector<float>>* all_heard(const ExchangeOf& of);

 private:
  struct Given {
    std::optional<std::uint32_t> iteration;
    std::vector<std::vector<float>> by_rank;
  };
  struct Heard {
    int ranks = 0;
    std::vector<std::vector<float>> by_rank;
  };
  struct Rank {
    GradientState state;
    std::optional<std::uint32_t> iteration;  // begun last
    // By tensor.
    std::map<std::uint32_t, std::vector<std::byte>> received = {};
    std::map<std::uint32_t, Heard> heard = {};
  };

  Given& slot(const ExchangeOf& of) { return given_.at(of.tensor)[of.iteration % 2]; }
  Rank& rank(GroupRank r) { return ranks_[static_cast<std::size_t>(r)]; }
  void note_loss(std::uint32_t iteration);

  std::map<std::uint32_t, TensorRange> ranges_;
  std::unique_ptr<const LogisticTask> task_;
  std::vector<Rank> ranks_;  // by rank of the communicator
  std::map<std::uint32_t, std::array<Given, 2>> given_;
  std::mutex mutex_;            // of given_
  std::vector<double> losses_;  // after every iteration, with the weights of rank 0
  struct Saved {
    std::uint32_t first = 0;  // iteration of the segment that began with this
    std::vector<Rank> ranks;
    std::vector<double> losses;
  };
  std::optional<Saved> saved_;
};

}  // namespace ghostrank
