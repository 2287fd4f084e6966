// Plays the passes of all stages against each other; only the order of the pipeline schedule and
// the hand-over from part to part hold them up.
#include <algorithm>
#include <map>
#include <utility>

#include "profiles/planners/pipeline/pipeline.h"

namespace ghostrank {
namespace {

// Rounds of micro-batches after which a period takes as long as the one before.
constexpr int kSteadyRounds = 64;

class Play {
 public:
  Play(const Pipeline& pipeline, const std::function<Picoseconds(int, Pass)>& time)
      : pipeline_(pipeline), time_(time) {
    for (int stage = 0; stage < pipeline.stages; ++stage)
      stages_.push_back({pipeline_slots(pipeline, stage)});
  }

  Picoseconds last_end() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int stage = 0; stage < pipeline_.stages; ++stage)
        while (step(stage)) moved = true;
    }
    Picoseconds last = 0;
    for (const Stage& stage : stages_) last = std::max(last, stage.now);
    return last;
  }

 private:
  struct Stage {
    std::vector<Slot> slots;
    std::size_t next = 0;
    Picoseconds now = 0;
  };
  using Done = std::map<std::pair<int, int>, Picoseconds>;  // by part and micro-batch

  // Plays the stage's next slot if its input is there.
  bool step(int number) {
    Stage& stage = stages_[number];
    if (stage.next == stage.slots.size()) return false;
    const Slot& slot = stage.slots[stage.next];
    const int part = pipeline_.part(number, slot.chunk);
    const bool forward = slot.pass == Pass::forward;
    Done& done = forward ? forwards_ : backwards_;
    Picoseconds start = stage.now;
    const int before = forward ? part - 1 : part + 1;
    const bool fed =
        slot.pass != Pass::weight_backward && before >= 0 && before < pipeline_.parts();
    if (fed) {
      const auto input = done.find({before, slot.micro_batch});
      if (input == done.end()) return false;
      start = std::max(start, input->second);
    }
    stage.now = start + time_(part, slot.pass);
    if (slot.pass != Pass::weight_backward) done[{part, slot.micro_batch}] = stage.now;
    ++stage.next;
    return true;
  }

  const Pipeline& pipeline_;
  const std::function<Picoseconds(int, Pass)>& time_;
  std::vector<Stage> stages_;
  Done forwards_, backwards_;
};

}  // namespace

Picoseconds pipeline_time(const Pipeline& pipeline,
                          const std::function<Picoseconds(int part, Pass pass)>& time) {
  if (pipeline.is_bidirectional()) return 0;
  const Pipeline steady = shortened(pipeline, kSteadyRounds * pipeline.stages),
                 before = shortened(steady, steady.micro_batches - pipeline_period(pipeline));
  const Picoseconds end = Play(steady, time).last_end();
  const int beyond = pipeline.micro_batches - steady.micro_batches;
  if (beyond == 0) return end;
  return end + beyond / pipeline_period(pipeline) * (end - Play(before, time).last_end());
}

}  // namespace ghostrank
