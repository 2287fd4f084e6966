#include "emulator/open_ended.h"

#include <string>
#include <utility>
#include <vector>

#include "emulator/common/blob.h"
#include "emulator/common/monotonic.h"
#include "emulator/result/figures.h"
#include "profiles/median.h"

namespace ghostrank {
namespace {

// What process 0 says before each part; with the last word, which has no count, also the median
// step of all parts and its error.
struct Word {
  std::uint32_t count = 0;
  double median_seconds = 0, median_error = 0;
};

Word last_word(const std::vector<IterationReport>& iterations) {
  std::vector<double> steps, late;
  for (const IterationReport& i : iterations)
    steps.push_back(i.seconds), late.push_back(i.late_seconds);
  const double error = median_error(steps, late);
  return {0, median(std::move(steps)), error};
}

}  // namespace

SegmentReport OpenEnded::play(Player& player, Control& control, Segment& segment,
                              std::int64_t began_ns, const Player::Callbacks& callbacks) {
  Word word;
  const auto next = [&](std::uint32_t, Picoseconds end) {
    BlobWriter mine;
    if (control.world().rank == 0) {
      const double wall = static_cast<double>(monotonic_ns() - began_ns) * 1e-9;
      word = {.count = length_.next(wall, seconds(end), step_wall_)};
      if (word.count == 0) word = last_word(iterations());
      mine.put(word);
    }
    const std::vector<std::string> all = control.all_gather(mine.bytes());
    word = {};
    if (!all.empty()) BlobReader(all[0]).get(word);
    parts_ += word.count > 0 ? 1 : 0;
    return word.count;
  };
  SegmentReport sum = player.play_parts(segment, next, callbacks);
  if (control.stop() == Stop::none) {
    sum.median_seconds = word.median_seconds;
    sum.median_error = word.median_error;
  }
  return sum;
}

void OpenEnded::iteration_ended(const IterationReport& report) {
  kept_.add(report);
  length_.iteration_ended(report.seconds);
}

void OpenEnded::report(bool first_process, Result& result) const {
  result.open_end = {length_.ended_by(), kept_.count(), kept_.one_in(), {}};
  if (kept_.one_in() > 1) result.open_end->numbers = kept_.numbers();
  if (std::string why = length_.why(); first_process && !why.empty())
    result.notes.push_back(std::move(why));
  if (parts_ > 1)
    result.notes.push_back("the measured iterations were played in " + std::to_string(parts_) +
                           " parts, between which everything is at rest");
  if (kept_.one_in() > 1)
    result.notes.push_back("of " + std::to_string(kept_.count()) + " iterations about one in " +
                           std::to_string(kept_.one_in()) +
                           " is kept, drawn evenly: the figures of steps are those of " +
                           std::to_string(kept_.numbers().size()) +
                           "; bytes, messages and calls are of all");
}

}  // namespace ghostrank
