#include "emulator/traffic/call_traffic.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "emulator/traffic/ledger.h"

namespace ghostrank {
namespace {

std::uint64_t step_bytes(const Schedule& schedule, const Step& step) {
  const std::uint32_t element = schedule.collective().element_bytes;
  if (schedule.protocol() == Protocol::simple) return step.send.count * element;
  std::uint64_t bytes = 0;  // each message is rounded up by itself
  for (std::uint32_t s = 0; s < step.slices; ++s) {
    bytes += message_bytes(schedule.protocol(), slice_of(step.send, step, s).count, element);
  }
  return bytes;
}

}  // namespace

CallTraffic walk(const Schedule& schedule) {
  CallTraffic call;
  const Collective& c = schedule.collective();
  call.call_bytes = call_elements(c) * c.element_bytes;
  std::map<std::tuple<GroupRank, GroupRank, int>, LedgerCell> sums;
  const auto add = [&](GroupRank r) {
    for (int a = 0; a < schedule.actors(r); ++a) {
      const Actor actor = schedule.actor(r, a);
      LedgerCell* cell = nullptr;
      GroupRank last = kNoRank;
      for (int k = 0; k < actor.steps; ++k) {
        const Step s = schedule.step(r, a, k);
        for (GroupRank peer : s.send_to) {
          if (!cell || peer != last) cell = &sums[{r, last = peer, actor.channel}];
          cell->bytes += step_bytes(schedule, s);
          cell->messages += s.slices;
        }
      }
    }
  };
  if (c.func == Func::send_recv)
    add(c.root);
  else
    for (GroupRank r = 0; r < c.size; ++r) add(r);
  for (const auto& [key, sum] : sums) {
    const auto& [from, to, channel] = key;
    call.edges.push_back({from, to, channel, sum.bytes, sum.messages});
  }
  return call;
}

}  // namespace ghostrank
