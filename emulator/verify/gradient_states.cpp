#include "emulator/verify/gradient_states.h"

#include <utility>

#include "switch/assert.h"

namespace ghostrank {

GradientStates::GradientStates(const JobSpec& spec, const Workload& workload)
    : ranges_(tensor_ranges(spec, workload)),
      task_(make_task(spec, workload.ranks, elements_of(ranges_))) {
  for (GroupRank r = 0; r < workload.ranks; ++r)
    ranks_.push_back({GradientState(spec, elements_of(ranges_), task_.get(), r), {}});
  for (const auto& [tensor, range] : ranges_) given_.try_emplace(tensor);
}

void GradientStates::begin_segment(std::uint32_t first) {
  if (saved_ && saved_->first == first) {
    ranks_ = saved_->ranks;
    losses_ = saved_->losses;
  } else {
    training();  // notes the last iteration's loss
    saved_ = {first, ranks_, losses_};
  }
  for (auto& [tensor, slots] : given_)
    for (Given& slot : slots) slot = {};
}

std::optional<TrainingUse> GradientStates::training() {
  if (!task_) return std::nullopt;
  if (const auto last = ranks_.front().iteration) note_loss(*last);
  return TrainingUse{"logistic", losses_};
}

void GradientStates::note_loss(std::uint32_t iteration) {
  if (losses_.size() <= iteration) losses_.resize(iteration + 1);
  losses_[iteration] = task_->loss(ranks_.front().state.weights());
}

std::span<const float> GradientStates::give(const ExchangeOf& of, std::vector<float> gradient) {
  Rank& own = rank(of.rank);
  if (own.iteration != of.iteration) {
    if (task_ && of.rank == 0 && own.iteration) note_loss(*own.iteration);
    own.iteration = of.iteration;
    own.state.begin(of.iteration);
  }
  {
    const std::lock_guard lock(mutex_);
    Given& given = slot(of);
    if (given.iteration != of.iteration) given = {of.iteration, {}};
    given.by_rank.resize(ranks_.size());
    if (const auto& made = given.by_rank[static_cast<std::size_t>(of.rank)]; !made.empty())
      return made;
  }
  own.state.compensate(ranges_.at(of.tensor), gradient);
  const std::lock_guard lock(mutex_);
  auto& made = slot(of).by_rank[of.rank];
  made = std::move(gradient);
  return made;
}

bool GradientStates::begun(const ExchangeOf& of) {
  const std::lock_guard lock(mutex_);
  const Given& given = slot(of);
  return given.iteration == of.iteration &&
         !given.by_rank[static_cast<std::size_t>(of.rank)].empty();
}

std::span<const float> GradientStates::given(const ExchangeOf& of) {
  const std::lock_guard lock(mutex_);
  const Given& given = slot(of);
  GHOSTRANK_ASSERT(given.iteration == of.iteration &&
                   !given.by_rank[static_cast<std::size_t>(of.rank)].empty());
  return given.by_rank[of.rank];
}

void GradientStates::finish(const ExchangeOf& of, std::span<const float> own,
                            std::span<const float> sum, bool vote) {
  rank(of.rank).received.erase(of.tensor);
  rank(of.rank).state.finish(ranges_.at(of.tensor), given(of), own, sum,
                             static_cast<int>(ranks_.size()), vote);
}

void GradientStates::receive(const ExchangeOf& of, std::span<const std::byte> before,
                             std::span<const std::byte> now) {
  std::vector<std::byte> all(before.begin(), before.end());
  all.insert(all.end(), now.begin(), now.end());
  rank(of.rank).received[of.tensor] = std::move(all);
}

std::span<const std::byte> GradientStates::received(const ExchangeOf& of) const {
  static const std::vector<std::byte> kNothing;  // earlier rounds may have sent nothing
  const auto& all = ranks_[static_cast<std::size_t>(of.rank)].received;
  const auto found = all.find(of.tensor);
  return found == all.end() ? kNothing : found->second;
}

void GradientStates::hear(const ExchangeOf& of, GroupRank from, std::vector<float> tensor) {
  Heard& heard = rank(of.rank).heard[of.tensor];
  if (heard.ranks == static_cast<int>(ranks_.size())) heard = {};
  heard.by_rank.resize(ranks_.size());
  heard.by_rank[static_cast<std::size_t>(from)] = std::move(tensor);
  ++heard.ranks;
}

const std::vector<std::vector<float>>* GradientStates::all_heard(const ExchangeOf& of) {
  const Heard& heard = rank(of.rank).heard[of.tensor];
  return heard.ranks == static_cast<int>(ranks_.size()) ? &heard.by_rank : nullptr;
}

}  // namespace ghostrank
