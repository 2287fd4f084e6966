#include "profiles/planners/pipeline/stage_actions.h"

#include <algorithm>
#include <utility>

namespace ghostrank {
namespace {

using Kind = StageAction::Kind;
using Waits = StageAction::Waits;
using Numbers = std::vector<std::size_t>;

StageAction pass(std::size_t slot) { return {Kind::pass, slot}; }
StageAction exchange(Numbers sends, Numbers receives, Waits waits) {
  return {Kind::exchange, 0, std::move(sends), std::move(receives), waits};
}
StageAction await(Numbers sends, Numbers receives) {
  return {Kind::await, 0, std::move(sends), std::move(receives)};
}

// Returns the slot after `slot`, or after the slot that is joined to it.
std::size_t end_of(std::span<const Slot> slots, std::size_t slot) {
  return slot + (slots[slot].joined ? 2 : 1);
}

// 1f1b, and schedules that wait for no send.
std::vector<StageAction> plain(const Pipeline& pipeline, int stage, std::span<const Slot> slots) {
  const bool awaited = pipeline.schedule == "1f1b";
  const Waits waits = awaited ? Waits::all : Waits::receives;
  // A stage whose micro-batches all fit in its warm-up never alternates.
  const bool alternates = awaited && pipeline.micro_batches >= pipeline.stages - stage;
  std::vector<StageAction> out;
  Numbers left;  // to send
  for (std::size_t begin = 0, end = 0; begin < slots.size(); begin = end) {
    end = end_of(slots, begin);
    for (std::size_t slot = begin; slot < end; ++slot)
      out.push_back(exchange(std::exchange(left, {}), {slot}, waits));
    out.push_back(pass(begin));
    for (std::size_t slot = begin; slot < end; ++slot) left.push_back(slot);
    if (alternates && end < slots.size() && slots[begin].pass != slots[end].pass) continue;
    for (const std::size_t slot : std::exchange(left, {}))
      out.push_back(exchange({slot}, {}, waits));
  }
  return out;
}

std::vector<StageAction> interleaved(std::span<const Slot> slots, std::size_t warmup) {
  Numbers forwards, backwards;
  for (std::size_t slot = 0; slot < slots.size(); ++slot)
    (slots[slot].pass == Pass::forward ? forwards : backwards).push_back(slot);
  const std::size_t total = forwards.size(), alternating = total - warmup;
  const auto next = [&](const Numbers& passes, std::size_t i) {
    return i + 1 < total ? Numbers{passes[i + 1]} : Numbers{};
  };
  std::vector<StageAction> out{exchange({}, {forwards[0]}, Waits::all)};
  for (std::size_t i = 0; i < warmup; ++i) {
    out.push_back(pass(forwards[i]));
    out.push_back(exchange({forwards[i]}, next(forwards, i), Waits::all));
  }
  out.push_back(exchange({}, {backwards[0]}, alternating > 0 ? Waits::nothing : Waits::all));
  Numbers sent;  // by the last backward, not yet awaited
  for (std::size_t i = 0; i < alternating; ++i) {
    const std::size_t forward = forwards[warmup + i];
    if (i > 0) out.push_back(await({}, {forward}));
    out.push_back(pass(forward));
    out.push_back(exchange({forward}, next(forwards, warmup + i), Waits::nothing));
    out.push_back(await({forward}, {}));
    out.push_back(await({}, {backwards[i]}));
    out.push_back(pass(backwards[i]));
    out.push_back(exchange({backwards[i]}, next(backwards, i), Waits::nothing));
    out.push_back(await(std::exchange(sent, {backwards[i]}), {}));
  }
  for (std::size_t i = alternating; i < total; ++i) {
    if (i == alternating && alternating > 0) out.push_back(await({}, {backwards[i]}));
    out.push_back(pass(backwards[i]));
    out.push_back(exchange({backwards[i]}, next(backwards, i), Waits::all));
  }
  out.push_back(await(std::move(sent), {}));
  return out;
}

// A batch of transfers before each pass, and one at the end.
std::vector<StageAction> dualpipe(std::span<const Slot> slots) {
  Numbers begin_of(slots.size() + 1);  // of the pass that has the slot
  for (std::size_t slot = 0; slot < slots.size(); ++slot)
    begin_of[slot] = slot > 0 && slots[slot - 1].joined ? slot - 1 : slot;
  begin_of.back() = slots.size();
  std::vector<StageAction> batches(slots.size() + 1, exchange({}, {}, Waits::all));
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    const std::size_t begin = begin_of[slot], end = end_of(slots, begin);
    const auto early = static_cast<std::size_t>(slots[slot].early),
               late = static_cast<std::size_t>(slots[slot].late);
    batches[begin_of[begin - early]].receives.push_back(slot);
    batches[begin_of[std::min(end + late, slots.size())]].sends.push_back(slot);
  }
  std::vector<StageAction> out;
  for (std::size_t begin = 0; begin < slots.size(); begin = end_of(slots, begin)) {
    out.push_back(std::move(batches[begin]));
    out.push_back(pass(begin));
  }
  out.push_back(std::move(batches.back()));
  return out;
}

}  // namespace

std::vector<StageAction> stage_actions(const Pipeline& pipeline, int stage,
                                       std::span<const Slot> slots) {
  if (pipeline.stages == 1) {
    std::vector<StageAction> out;
    for (std::size_t slot = 0; slot < slots.size(); slot = end_of(slots, slot))
      out.push_back(pass(slot));
    return out;
  }
  if (pipeline.schedule == "interleaved")
    return interleaved(slots, static_cast<std::size_t>(interleaved_warmup(pipeline, stage)));
  if (pipeline.is_bidirectional()) return dualpipe(slots);
  return plain(pipeline, stage, slots);
}

}  // namespace ghostrank
